/**
 * Remote configurations in memory.
 */
import { type Configuration, type ConfigurationScope, ConfigurationStore, keptConfigurations } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { Tables } from "./Tables.ts"

/** Can be replaced alone. It refuses configurations of products and devices that its tables do not have. */
export const layer: Layer.Layer<ConfigurationStore, never, Tables> = Layer.effect(
  ConfigurationStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = ({ configurationProgress, configurations, devices, products }: Tables["Service"]) => {
  const ofScope = (scope: ConfigurationScope): ReadonlyArray<Configuration> =>
    configurations.get("productKey" in scope ? scope.productKey : scope.deviceId) ?? []

  return ConfigurationStore.of({
    insert: (scope, draft) =>
      Effect.sync(() => {
        const owner = "productKey" in scope ? products.get(scope.productKey) : devices.get(scope.deviceId)
        if (owner === undefined) return Option.none()
        const known = ofScope(scope)
        const stored = { ...draft, version: (known[0]?.version ?? 0) + 1 }
        const all = [stored, ...known]
        configurations.set(
          "productKey" in scope ? scope.productKey : scope.deviceId,
          all.slice(0, keptConfigurations)
        )
        return Option.some({ stored, dropped: all.slice(keptConfigurations) })
      }),
    versions: (scope) => Effect.sync(() => ofScope(scope)),
    remove: (scope) =>
      Effect.sync(() => {
        const removed = ofScope(scope)
        configurations.delete("productKey" in scope ? scope.productKey : scope.deviceId)
        return removed
      }),
    current: ({ deviceId, productKey }) =>
      Effect.sync(() => Option.fromUndefinedOr(ofScope({ deviceId })[0] ?? ofScope({ productKey })[0])),
    note: (offer) =>
      Effect.sync(() => {
        const { configurationId, deviceId } = offer
        const known = configurationProgress.get(deviceId)
        if (!devices.has(deviceId)) return
        if (known?.configurationId === configurationId && known.state === "applied") return
        configurationProgress.set(deviceId, { ...offer, state: "offered" })
      }),
    confirm: (deviceId, at) =>
      Effect.sync(() => {
        const known = configurationProgress.get(deviceId)
        if (known !== undefined) configurationProgress.set(deviceId, { ...known, state: "applied", at })
      }),
    progress: (productKey, { page, pageSize }) =>
      Effect.sync(() => {
        const all = [...configurationProgress.values()]
          .filter(({ deviceId }) => devices.get(deviceId)?.productKey === productKey)
          .sort((a, b) => b.at - a.at || (a.deviceId < b.deviceId ? -1 : 1))
        return { items: all.slice((page - 1) * pageSize, page * pageSize), total: all.length }
      })
  })
}
