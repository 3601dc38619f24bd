import {
  DeviceCloud,
  Devices,
  Firmwares,
  Objects,
  objectsPath,
  ObjectStore,
  OtaStore,
  PresenceStore,
  Upgrades,
  UpgradeTasks
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Faults, Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"
import { cloudWith } from "./FaultyCloud.ts"
import { nodes } from "./StandingNode.ts"
import { createTask } from "./UpgradeFixtures.ts"

/** How often the device was told of its upgrade. */
const toldTimes = ({ received }: SimulatedDevice.SimulatedDevice) =>
  Effect.map(Queue.clear(received), (all) => all.filter(({ method }) => method === "thing.ota.upgrade").length)

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

it.effect("a device whose upgrade has begun in the store, which lost the answer, is told", () =>
  Effect.gen(function*() {
    const product = yield* Fixtures.createProduct()
    const device = yield* SimulatedDevice.connect(yield* Fixtures.createDevice(product))
    yield* createTask(product)
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual(yield* toldTimes(device), 1)
  }).pipe(Effect.provide(cloudWith({ on: "OtaStore.save", does: "loseAnswer", calls: (n) => n === 1 }))))

it.effect("a node that another one asks to tell a device tells it, though the store lost the answer", () =>
  Effect.gen(function*() {
    const node = DeviceCloud.layer.pipe(Layer.provide(StorageMemory.layerNode))
    const one = yield* Layer.build(Layer.fresh(node))
    const faults = Faults.layer({
      seed: 1,
      faults: [
        { on: "OtaStore.claimDue", does: "fail" },
        { on: "OtaStore.save", does: "loseAnswer", calls: (n) => n === 1 }
      ]
    })
    const two = yield* Layer.build(Layer.fresh(node.pipe(Layer.provide(faults))))
    yield* Effect.gen(function*() {
      const product = yield* Fixtures.createProduct()
      const identity = yield* Fixtures.createDevice(product)
      const device = yield* SimulatedDevice.connect(identity).pipe(Effect.provideContext(two))
      yield* createTask(product)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* toldTimes(device), 1)
    }).pipe(Effect.provideContext(one))
  }).pipe(Effect.provide(Layer.merge(StorageMemory.layer, PlatformNode.layer)), Effect.scoped))

it.effect.each([["2 minutes"], ["35 seconds"]] as const)(
  "a device that reports its version while the store is away until %s has not timed out",
  ([until]) =>
    Effect.gen(function*() {
      const product = yield* Fixtures.createProduct()
      const identity = yield* Fixtures.createDevice(product)
      const device = yield* SimulatedDevice.connect(identity)
      yield* createTask(product, { timeout: 30 })
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* toldTimes(device), 1)
      const reported = yield* Effect.forkChild(device.send("thing.ota.inform", { version: "2.0.0" }))
      yield* TestClock.adjust("3 minutes")
      yield* Fiber.join(reported)
      const { reason } = yield* (yield* Upgrades).diagnose(product.projectId, identity.deviceId)
      assert.strictEqual(reason, "succeeded")
    }).pipe(Effect.provide(cloudWith({
      on: ["OtaStore.claimDue", "OtaStore.reportVersions", "OtaStore.save"],
      does: "fail",
      during: ["5 seconds", until]
    })))
)

it.effect("a device that has moved from a node that stood still is told of an upgrade that this node finds due", () =>
  Effect.gen(function*() {
    const { elsewhere, here, runs } = yield* nodes
    yield* Effect.gen(function*() {
      const product = yield* Fixtures.createProduct()
      const identity = yield* Fixtures.createDevice(product)
      yield* SimulatedDevice.connect(identity)
      yield* TestClock.adjust("20 seconds")
      yield* runs.close
      yield* TestClock.adjust("20 seconds")
      const device = yield* SimulatedDevice.connect(identity).pipe(Effect.provideContext(elsewhere))
      yield* TestClock.adjust("2 seconds")
      yield* createTask(product)
      yield* runs.open
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(yield* toldTimes(device), 1)
    }).pipe(Effect.provideContext(here))
  }).pipe(Effect.provide(Layer.merge(StorageMemory.layer, PlatformNode.layer)), Effect.scoped))

it.effect("the upgrades of a device end that was deleted just before the store went away", () =>
  Effect.gen(function*() {
    const product = yield* Fixtures.createProduct()
    const { deviceId } = yield* Fixtures.createDevice(product)
    const taskId = yield* createTask(product)
    yield* TestClock.adjust("15 seconds")
    const deletion = yield* Effect.exit((yield* Devices).remove(product.projectId, deviceId))
    assert.isTrue(Exit.isFailure(deletion))
    const task = Effect.flatMap(UpgradeTasks, (tasks) => tasks.get(product.projectId, taskId))
    assert.strictEqual((yield* task).counts.pending, 1)
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual((yield* task).counts.pending, 1)
    // Another node starts.
    yield* Layer.build(Layer.fresh(DeviceCloud.layer))
    yield* TestClock.adjust("1 second")
    const { counts, status } = yield* task
    assert.deepStrictEqual([counts.pending, counts.cancelled, status], [0, 1, "failed"])
  }).pipe(
    Effect.scoped,
    Effect.provide(cloudWith({
      on: "OtaStore.unfinished",
      does: "fail",
      during: ["10 seconds", "20 seconds"]
    }))
  ))

it.effect("devices are told of their upgrades while the object store of an application throws", () => {
  let throws = false
  const broken = Layer.effect(
    ObjectStore,
    Effect.map(ObjectStore, (store) => ({
      ...store,
      find: (objectId: string) => {
        if (throws) throw new Error("the object store throws")
        return store.find(objectId)
      }
    }))
  ).pipe(Layer.provide(PlatformNode.MemoryObjectStore.layer))
  return Effect.gen(function*() {
    const [product, other] = [yield* Fixtures.createProduct(), yield* Fixtures.createProduct()]
    const { productKey, projectId } = product
    const devices = yield* Effect.forEach(
      [product, other],
      (of) => Effect.flatMap(Fixtures.createDevice(of), (identity) => SimulatedDevice.connect(identity))
    )
    const content = Stream.succeed(Buffer.alloc(10))
    const { fileName, md5, objectId } = yield* (yield* Objects).upload(projectId, "firmware.bin", content)
    const { firmware: { firmwareId } } = yield* (yield* Firmwares).create(projectId, productKey, {
      name: "Lamp",
      version: "2.0.0",
      ossPath: `https://example.com${objectsPath}/${objectId}/${fileName}`,
      algorithms: "md5",
      hash: md5
    })
    yield* (yield* UpgradeTasks).createUpgradeTask(projectId, firmwareId, {
      scopeMode: "all",
      cloudPush: true,
      downloadProtocol: "mqtt"
    })
    yield* createTask(other)
    throws = true
    yield* TestClock.adjust("10 seconds")
    assert.deepStrictEqual(yield* Effect.forEach(devices, toldTimes), [1, 1])
  }).pipe(Effect.provide(DeviceCloud.layer.pipe(
    Layer.provideMerge(Objects.layer),
    Layer.provide(broken),
    Layer.provideMerge(StorageMemory.layer),
    Layer.provideMerge(PlatformNode.layer)
  )))
})
