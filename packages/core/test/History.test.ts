import { DeviceCloud, History, HistoryStore } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"

const cloud = Layer.mergeAll(DeviceCloud.layer, History.layerRetention("1 hour")).pipe(
  Layer.provideMerge(StorageMemory.layer),
  Layer.provideMerge(PlatformNode.layer)
)

it.effect("history is forgotten by when it was stored, not by when it was measured", () =>
  Effect.gen(function*() {
    const product = yield* Fixtures.createProduct({ validateType: "none" })
    const device = yield* SimulatedDevice.connect(yield* Fixtures.createDevice(product))
    const values = Effect.flatMap(HistoryStore, (store) =>
      Effect.map(
        store.samples(device.device.deviceId, "a", { start: 0, end: 8.64e15, limit: 10, order: "asc" }),
        (samples) => samples.map(({ value }) => value)
      ))
    yield* device.postProperties({ a: 1 })
    yield* TestClock.adjust("50 minutes")
    // Measured long ago, stored now.
    yield* device.postProperties({ a: { value: 2, time: 0 } })
    assert.deepStrictEqual(yield* values, [1, 2])
    yield* TestClock.adjust("20 minutes")
    assert.deepStrictEqual(yield* values, [2])
    yield* TestClock.adjust("1 hour")
    assert.deepStrictEqual(yield* values, [])
  }).pipe(Effect.provide(cloud)))
