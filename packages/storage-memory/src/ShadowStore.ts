/**
 * Shadows in memory.
 */
import { emptyShadow, type ShadowModification, ShadowStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { Tables } from "./Tables.ts"

/** Part of the group that is replaced together: `UplinkStore` and `CommandStore` write shadows too. */
export const layer: Layer.Layer<ShadowStore, never, Tables> = Layer.effect(
  ShadowStore,
  Effect.suspend(() => make)
)

export const modifyShadow = <A>(
  { devices, shadows }: Tables["Service"],
  { deviceId, modify }: ShadowModification<A>
): Option.Option<A> => {
  if (!devices.has(deviceId)) return Option.none()
  const [result, shadow] = modify(shadows.get(deviceId) ?? emptyShadow(deviceId))
  shadows.set(deviceId, shadow)
  return Option.some(result)
}

const make = Effect.gen(function*() {
  const tables = yield* Tables
  const { devices, shadows } = tables
  return ShadowStore.of({
    get: (deviceId) =>
      Effect.sync(() =>
        devices.has(deviceId) ? Option.some(shadows.get(deviceId) ?? emptyShadow(deviceId)) : Option.none()
      ),
    sample: (productKey, limit) =>
      Effect.sync(() =>
        [...devices.values()].filter((device) => device.productKey === productKey).toReversed().slice(0, limit)
          .flatMap(({ deviceId }) => shadows.get(deviceId) ?? [])
      ),
    modify: (modifications) =>
      Effect.sync(() => modifications.map((modification) => modifyShadow(tables, modification)))
  })
})
