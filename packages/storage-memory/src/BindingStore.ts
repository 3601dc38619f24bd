/**
 * Which devices are bound, in memory.
 */
import { BindingStore, unbound } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { Tables } from "./Tables.ts"

/** Can be replaced alone. It refuses bindings of devices that its tables do not have. */
export const layer: Layer.Layer<BindingStore, never, Tables> = Layer.effect(
  BindingStore,
  Effect.map(Tables, (tables) => make(tables))
)

const make = ({ bindings, devices }: Tables["Service"]) =>
  BindingStore.of({
    get: (deviceId) => Effect.sync(() => bindings.get(deviceId) ?? unbound),
    modify: (deviceId, change) =>
      Effect.sync(() => {
        const changed = devices.has(deviceId) ? change(bindings.get(deviceId) ?? unbound) : undefined
        if (changed === undefined) return false
        bindings.set(deviceId, changed)
        return true
      })
  })
