/**
 * The transaction of the uplink in memory.
 */
import { type DeviceCommit, executionsOf, UplinkStore } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { append } from "./HistoryStore.ts"
import { addExecutions } from "./ExecutionStore.ts"
import { modifyShadow } from "./ShadowStore.ts"
import { Tables } from "./Tables.ts"

/** Part of the group that is replaced together: a commit writes shadows, history, commands and executions. */
export const layer: Layer.Layer<UplinkStore, never, Tables> = Layer.effect(
  UplinkStore,
  Effect.suspend(() => make)
)

const make = Effect.gen(function*() {
  const tables = yield* Tables

  const commitDevice = <A>({ deviceId, update }: DeviceCommit<A>, now: number) =>
    modifyShadow(tables, {
      deviceId,
      modify: (before) => {
        const [result, shadow, facts] = update(before)
        append(tables, deviceId, facts, now)
        addExecutions(tables, executionsOf(facts.reactions))
        return [result, shadow]
      }
    })

  return UplinkStore.of({
    commit: ({ commands, devices }) =>
      Effect.clockWith((clock) =>
        Effect.sync(() => {
          const now = clock.currentTimeMillisUnsafe()
          tables.ledger.advance(commands)
          return devices.map((device) => commitDevice(device, now))
        })
      )
  })
})
