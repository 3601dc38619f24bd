import { DeviceCloud, OtaStore, PresenceStore } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Queue } from "effect"
import { TestClock } from "effect/testing"
import { createTask } from "./UpgradeFixtures.ts"

const cloud = DeviceCloud.layer.pipe(Layer.provideMerge(StorageMemory.layer), Layer.provideMerge(PlatformNode.layer))

it.effect("an upgrade that was due while its device was at a node that is gone is told when the device is back", () =>
  Effect.gen(function*() {
    const product = yield* Fixtures.createProduct()
    const device = yield* Fixtures.createDevice(product)
    yield* (yield* PresenceStore).record([
      { _tag: "Online", deviceId: device.deviceId, connectionId: "c", nodeId: "gone", ip: "", at: 0 }
    ])
    yield* createTask(product)
    yield* TestClock.adjust("2 seconds")
    const back = yield* SimulatedDevice.connect(device)
    yield* back.send("thing.ota.inform", { version: "1.0.0" })
    yield* TestClock.adjust("6 seconds")
    const told = (yield* Queue.clear(back.received)).filter(({ method }) => method === "thing.ota.upgrade")
    assert.strictEqual(told.length, 1)
  }).pipe(Effect.provide(cloud)))

it.effect("a device that comes while a node that saw it away still moves its upgrade on is told", () =>
  Effect.gen(function*() {
    const goesOn = yield* Deferred.make<void>()
    let isFirst = true
    const slowly = Layer.effect(
      OtaStore,
      Effect.map(OtaStore, (store) => ({
        ...store,
        save: (changes) => {
          const waits = isFirst
          isFirst = false
          return Effect.andThen(waits ? Deferred.await(goesOn) : Effect.void, store.save(changes))
        }
      }))
    )
    yield* Effect.gen(function*() {
      const product = yield* Fixtures.createProduct()
      const identity = yield* Fixtures.createDevice(product)
      yield* createTask(product)
      yield* TestClock.adjust("2 seconds")
      const device = yield* SimulatedDevice.connect(identity)
      yield* device.send("thing.ota.inform", { version: "1.0.0" })
      yield* Deferred.succeed(goesOn, undefined)
      yield* TestClock.adjust("10 seconds")
      const told = (yield* Queue.clear(device.received)).filter(({ method }) => method === "thing.ota.upgrade")
      assert.strictEqual(told.length, 1)
    }).pipe(Effect.provide(DeviceCloud.layer.pipe(
      Layer.provideMerge(slowly),
      Layer.provideMerge(StorageMemory.layer),
      Layer.provideMerge(PlatformNode.layer)
    )))
  }))
