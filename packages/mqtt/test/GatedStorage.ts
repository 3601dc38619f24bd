/**
 * Storage in memory whose commits of the uplink wait while a gate is closed.
 */
import { type DeviceCloud, UplinkStore } from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Effect, Latch, Layer } from "effect"

export const gate = Latch.makeUnsafe(true)

export const layer: Layer.Layer<DeviceCloud.Stores> = Layer.effect(
  UplinkStore,
  Effect.map(UplinkStore, (store): UplinkStore["Service"] => ({
    ...store,
    commit: (batch) => Effect.andThen(gate.await, store.commit(batch))
  }))
).pipe(Layer.provideMerge(StorageMemory.layer))
