/**
 * The transaction of the uplink in memory.
 */
import { type DeviceCommit, type DeviceId, emptyShadow, executionsOf, UplinkStore } from "@device-cloud/core"
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

  const store = <A>(deviceId: DeviceId, computed: ReturnType<typeof compute<A>>): Option.Option<A> => {
    if (computed === undefined) return Option.none()
    const [result, shadow, facts] = computed
    tables.shadows.set(deviceId, shadow)
    append(tables, deviceId, facts)
    addExecutions(tables, executionsOf(facts.reactions))
    return Option.some(result)
  }

  return UplinkStore.of({
    commit: ({ commands, devices, isComplete = () => true }) =>
      Effect.sync(() => {
        let computed = devices.map(compute)
        while (!isComplete()) computed = devices.map(compute)
        tables.ledger.advance(commands)
        return devices.map(({ deviceId }, i) => store(deviceId, computed[i]))
      })
  })
})
