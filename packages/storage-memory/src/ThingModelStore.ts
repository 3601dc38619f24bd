/**
 * Thing models in memory.
 */
import { keptVersions, type ProductKey, ThingModelStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { Tables } from "./Tables.ts"

/** Can be replaced alone. It refuses models of products that its tables do not have. */
export const layer: Layer.Layer<ThingModelStore, never, Tables> = Layer.effect(
  ThingModelStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = ({ models, products }: Tables["Service"]) => {
  const latest = (productKey: ProductKey) => models.get(productKey)?.[0]
  return ThingModelStore.of({
    latest: (productKey) => Effect.sync(() => Option.fromUndefinedOr(latest(productKey))),
    versionsOf: (productKeys) =>
      Effect.sync(() =>
        new Map(productKeys.flatMap((productKey) => {
          const version = latest(productKey)?.version
          return version === undefined ? [] : [[productKey, version] as const]
        }))
      ),
    history: (productKey) => Effect.sync(() => models.get(productKey) ?? []),
    insert: (productKey, version) =>
      Effect.sync(() => {
        if (!products.has(productKey) || version.version !== (latest(productKey)?.version ?? 0) + 1) return false
        models.set(productKey, [version, ...models.get(productKey) ?? []].slice(0, keptVersions))
        return true
      })
  })
}
