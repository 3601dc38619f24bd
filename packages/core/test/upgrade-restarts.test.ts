import { DeviceCloud, PresenceStore } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Effect, Layer, Queue } from "effect"
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
