/**
 * The transaction of the uplink in memory.
 */
import { type DeviceCommit, type DeviceId, emptyShadow, executionsOf, historyOf, UplinkStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { append } from "./HistoryStore.ts"
import { addExecutions } from "./ExecutionStore.ts"
import { Tables } from "./Tables.ts"

/** Part of the group that is replaced together: a commit writes shadows, history, commands and executions. */
export const layer: Layer.Layer<UplinkStore, never, Tables> = Layer.effect(
  UplinkStore,
  Effect.suspend(() => make)
)

const make = Effect.gen(function*() {
  const tables = yield* Tables

  /** Runs the update of a device; undefined: the device does not exist. */
  const compute = <A>({ deviceId, update }: DeviceCommit<A>) =>
    tables.devices.has(deviceId) ? update(tables.shadows.get(deviceId) ?? emptyShadow(deviceId)) : undefined

  const store = <A>(
    deviceId: DeviceId,
    computed: ReturnType<typeof compute<A>>,
    hasHistory: boolean,
    now: number
  ): Option.Option<A> => {
    if (computed === undefined) return Option.none()
    const [result, shadow, facts] = computed
    tables.shadows.set(deviceId, shadow)
    tables.feed.append(facts.happened, now)
    if (hasHistory) append(tables, deviceId, historyOf(facts.happened))
    addExecutions(tables, executionsOf(facts.reactions))
    return Option.some(result)
  }

  return UplinkStore.of({
    commit: ({ commands, devices, happened = [], isComplete = () => true, isHistoryApart = false }) =>
      Effect.clockWith((clock) =>
        Effect.sync(() => {
          let computed = devices.map(compute)
          while (!isComplete()) computed = devices.map(compute)
          const now = clock.currentTimeMillisUnsafe()
          tables.ledger.advance(commands)
          tables.feed.append(happened, now)
          return devices.map(({ deviceId }, i) => store(deviceId, computed[i], !isHistoryApart, now))
        })
      )
  })
})
