/**
 * No minute has more devices that are told than their task allows, also when they
 * come back together.
 */
import { DeviceCloud } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Layer, Queue } from "effect"
import { TestClock } from "effect/testing"
import { cloudWith } from "./FaultyCloud.ts"
import { createTask } from "./UpgradeFixtures.ts"

const perMinute = 3
const count = 12

/** Devices of a product, and a task that tells `perMinute` of them. */
const campaign = Effect.gen(function*() {
  const product = yield* Fixtures.createProduct()
  const devices = yield* Effect.replicateEffect(Fixtures.createDevice(product), count)
  yield* createTask(product, { maximumPerMinute: perMinute })
  return devices
})

/** When each of the devices was told in the minutes to come, Unix milliseconds, in the order of time. */
const toldWithin = Effect.fnUntraced(function*(
  devices: ReadonlyArray<SimulatedDevice.SimulatedDevice>,
  minutes: number
) {
  const told: Array<number> = []
  for (let second = 0; second < minutes * 60; second++) {
    const now = yield* Clock.currentTimeMillis
    for (const { received } of devices) {
      for (const { method } of yield* Queue.clear(received)) if (method === "thing.ota.upgrade") told.push(now)
    }
    yield* TestClock.adjust("1 second")
  }
  return told
})

/** How many are told in the fullest 60 seconds. */
const fullest = (told: ReadonlyArray<number>) =>
  Math.max(...told.map((from) => told.filter((at) => at >= from && at < from + 60_000).length))

const back = Effect.fnUntraced(function*(device: Parameters<typeof SimulatedDevice.connect>[0]) {
  const connected = yield* SimulatedDevice.connect(device)
  yield* connected.send("thing.ota.inform", { version: "1.0.0" })
  return connected
})

const cloud = DeviceCloud.layer.pipe(Layer.provideMerge(StorageMemory.layer), Layer.provideMerge(PlatformNode.layer))

it.effect("devices that come back together after an outage are told at the pace of their task", () =>
  Effect.gen(function*() {
    const devices = yield* campaign
    yield* TestClock.adjust("10 minutes")
    const told = yield* toldWithin(yield* Effect.forEach(devices, back), 8)
    assert.strictEqual(told.length, count)
    assert.strictEqual(fullest(told), perMinute)
  }).pipe(Effect.provide(cloud)))

it.effect("devices whose turns came while the store was away are told at the pace of their task", () =>
  Effect.gen(function*() {
    const devices = yield* campaign
    const told = yield* toldWithin(yield* Effect.forEach(devices, (device) => SimulatedDevice.connect(device)), 18)
    assert.strictEqual(told.length, count)
    assert.strictEqual(fullest(told), perMinute)
  }).pipe(Effect.provide(
    cloudWith({ on: "OtaStore.claimDue", does: "fail", during: [0, "10 minutes"] })
  )))

it.effect("what one node has told counts on another", () =>
  Effect.gen(function*() {
    const node = Layer.build(Layer.fresh(DeviceCloud.layer.pipe(Layer.provide(StorageMemory.layerNode))))
    const [one, two] = [yield* node, yield* node]
    const devices = yield* campaign.pipe(Effect.provideContext(one))
    yield* TestClock.adjust("10 minutes")
    const here = yield* Effect.forEach(devices.slice(0, perMinute), back).pipe(Effect.provideContext(one))
    assert.strictEqual((yield* toldWithin(here, 0.05)).length, perMinute)
    const there = yield* Effect.forEach(devices.slice(perMinute), back).pipe(Effect.provideContext(two))
    assert.deepStrictEqual(yield* toldWithin(there, 0.5), [])
    const told = yield* toldWithin(there, 8)
    assert.strictEqual(told.length, count - perMinute)
    assert.strictEqual(fullest(told), perMinute)
  }).pipe(Effect.provide(Layer.merge(StorageMemory.layer, PlatformNode.layer)), Effect.scoped))
