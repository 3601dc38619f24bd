/**
 * Shadows in memory.
 */
import { emptyShadow, type ShadowModification, ShadowStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { Tables } from "./Tables.ts"

const make = Effect.gen(function*() {
  const { devices, shadows } = yield* Tables

  const modify = <A>({ deviceId, modify }: ShadowModification<A>): Option.Option<A> => {
    if (!devices.has(deviceId)) return Option.none()
    const [answer, shadow] = modify(shadows.get(deviceId) ?? emptyShadow(deviceId))
    shadows.set(deviceId, shadow)
    return Option.some(answer)
  }

  return ShadowStore.of({
    get: (deviceId) =>
      Effect.sync(() =>
        devices.has(deviceId) ? Option.some(shadows.get(deviceId) ?? emptyShadow(deviceId)) : Option.none()
      ),
    modify: (modifications) => Effect.sync(() => modifications.map(modify))
  })
})

export const layer: Layer.Layer<ShadowStore, never, Tables> = Layer.effect(ShadowStore, make)
