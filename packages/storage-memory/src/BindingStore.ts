/**
 * Which devices have joined, in memory.
 */
import { BindingStore, unbound } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { Tables } from "./Tables.ts"

const make = Effect.map(Tables, ({ bindings, devices }) =>
  BindingStore.of({
    get: (deviceId) => Effect.sync(() => bindings.get(deviceId) ?? unbound),
    modify: (deviceId, change) =>
      Effect.sync(() => {
        const changed = devices.has(deviceId) ? change(bindings.get(deviceId) ?? unbound) : undefined
        if (changed === undefined) return false
        bindings.set(deviceId, changed)
        return true
      })
  }))

export const layer: Layer.Layer<BindingStore, never, Tables> = Layer.effect(BindingStore, make)
