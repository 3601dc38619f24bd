/**
 * Shadows in memory.
 */
import { emptyShadow, noFacts, type ShadowModification, ShadowStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { addExecutions } from "./SceneStore.ts"
import { Tables } from "./Tables.ts"
import { append } from "./HistoryStore.ts"

export const modifyShadow = <A>(
  tables: Tables["Service"],
  { deviceId, modify }: ShadowModification<A>,
  now: number
): Option.Option<A> => {
  const { devices, shadows } = tables
  if (!devices.has(deviceId)) return Option.none()
  const [answer, shadow, facts = noFacts] = modify(shadows.get(deviceId) ?? emptyShadow(deviceId))
  shadows.set(deviceId, shadow)
  append(tables, deviceId, facts, now)
  addExecutions(tables, facts.executions)
  return Option.some(answer)
}

const make = Effect.gen(function*() {
  const tables = yield* Tables
  const { devices, ledger, shadows } = tables
  return ShadowStore.of({
    get: (deviceId) =>
      Effect.sync(() =>
        devices.has(deviceId) ? Option.some(shadows.get(deviceId) ?? emptyShadow(deviceId)) : Option.none()
      ),
    sample: (productKey, limit) =>
      Effect.sync(() =>
        [...devices.values()].filter((device) => device.productKey === productKey).slice(-limit).flatMap((
          { deviceId }
        ) => shadows.get(deviceId) ?? [])
      ),
    modify: (modifications, outcomes = []) =>
      Effect.clockWith((clock) =>
        Effect.sync(() => {
          const now = clock.currentTimeMillisUnsafe()
          ledger.advance(outcomes)
          return modifications.map((modification) => modifyShadow(tables, modification, now))
        })
      )
  })
})

export const layer: Layer.Layer<ShadowStore, never, Tables> = Layer.effect(ShadowStore, make)
