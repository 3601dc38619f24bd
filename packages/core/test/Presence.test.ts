import {
  defaultProjectId,
  type Device,
  DeviceCloud,
  deviceIdentity,
  Devices,
  DeviceSessions,
  PresenceStore,
  Products,
  StoreError
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Exit, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { cloudWith } from "./FaultyCloud.ts"

/** One node of a cloud whose nodes share their stores; it lives in a scope of its own. */
const startNode = Effect.gen(function*() {
  const scope = yield* Scope.make()
  const context = yield* Layer.buildWithScope(
    Layer.fresh(DeviceCloud.layer.pipe(Layer.provide(StorageMemory.layerNode))),
    scope
  )
  return { context, stop: Scope.close(scope, Exit.void) }
})

const createDevice = Effect.flatMap(Fixtures.createProduct({ validateType: "none" }), Fixtures.createDevice)
const statusOf = ({ deviceId }: Device) =>
  Effect.flatMap(
    Devices,
    (devices) =>
      Effect.map(devices.get(defaultProjectId, { deviceId }), ({ device: { status, statusVersion } }) =>
        [status, statusVersion] as const)
  )

const stores = StorageMemory.layer.pipe(Layer.provideMerge(PlatformNode.layer))

it.effect("the devices of a node that stops go offline with it", () =>
  Effect.gen(function*() {
    const [first, second] = [yield* startNode, yield* startNode]
    const device = yield* Effect.provide(createDevice, first.context)
    yield* Effect.provide(SimulatedDevice.connect(device), first.context)
    assert.deepStrictEqual(yield* Effect.provide(statusOf(device), second.context), ["online", 1])
    yield* first.stop
    assert.deepStrictEqual(yield* Effect.provide(statusOf(device), second.context), ["offline", 2])
    yield* second.stop
  }).pipe(Effect.provide(stores)))

it.effect("the devices of a node that died go offline after its silence, those of live nodes stay", () =>
  Effect.gen(function*() {
    const node = yield* startNode
    const [ghost, alive] = yield* Effect.provide(Effect.all([createDevice, createDevice]), node.context)
    yield* Effect.provide(SimulatedDevice.connect(alive), node.context)
    const presence = yield* PresenceStore
    yield* presence.heartbeat("dead node", { silence: 9000, gap: 5000 })
    const at = 0
    const { deviceId } = ghost
    yield* presence.record([{ _tag: "Online", deviceId, connectionId: "c", nodeId: "dead node", ip: "", at }])
    yield* TestClock.adjust("9 seconds")
    assert.deepStrictEqual(yield* Effect.provide(statusOf(ghost), node.context), ["online", 1])
    yield* TestClock.adjust("10 minutes")
    assert.deepStrictEqual(yield* Effect.provide(statusOf(ghost), node.context), ["offline", 2])
    assert.deepStrictEqual(yield* Effect.provide(statusOf(alive), node.context), ["online", 1])
    yield* node.stop
  }).pipe(Effect.provide(stores)))

it.effect("the devices of a node that is known to have ended go offline at once, those of others stay", () =>
  Effect.gen(function*() {
    const node = yield* startNode
    const [ghost, alive] = yield* Effect.provide(Effect.all([createDevice, createDevice]), node.context)
    yield* Effect.provide(SimulatedDevice.connect(alive), node.context)
    const presence = yield* PresenceStore
    yield* presence.heartbeat("ended node", { silence: 9000, gap: 5000 })
    const { deviceId } = ghost
    yield* presence.record([{ _tag: "Online", deviceId, connectionId: "c", nodeId: "ended node", ip: "", at: 0 }])
    yield* Effect.provide(DeviceSessions.use(({ nodeEnded }) => nodeEnded("ended node")), node.context)
    assert.deepStrictEqual(yield* Effect.provide(statusOf(ghost), node.context), ["offline", 2])
    assert.deepStrictEqual(yield* Effect.provide(statusOf(alive), node.context), ["online", 1])
    yield* node.stop
  }).pipe(Effect.provide(stores)))

it.effect("the devices of a node that could not speak for too long are online again when it can", () =>
  Effect.gen(function*() {
    const presence = yield* PresenceStore
    let isCutOff = false
    const cutOff = Effect.fail(new StoreError({ operation: "heartbeat", retryable: true, cause: undefined }))
    const unlessCutOff = <A>(effect: Effect.Effect<A, StoreError>) => Effect.suspend(() => isCutOff ? cutOff : effect)
    const unreliable = PresenceStore.of({
      ...presence,
      heartbeat: (nodeId, limits) => unlessCutOff(presence.heartbeat(nodeId, limits)),
      connectionsOf: (deviceIds) => unlessCutOff(presence.connectionsOf(deviceIds))
    })
    const [frozen, other] = [yield* Effect.provideService(startNode, PresenceStore, unreliable), yield* startNode]
    const [device, left] = yield* Effect.provide(Effect.all([createDevice, createDevice]), other.context)
    const connected = yield* Effect.provide(SimulatedDevice.connect(device), frozen.context)
    const moved = yield* Effect.provide(SimulatedDevice.connect(left), frozen.context)
    isCutOff = true
    yield* TestClock.adjust("20 seconds")
    assert.deepStrictEqual(yield* Effect.provide(statusOf(device), other.context), ["offline", 2])
    yield* Effect.provide(SimulatedDevice.connect(left), other.context)
    isCutOff = false
    yield* TestClock.adjust("4 seconds")
    assert.deepStrictEqual(yield* Effect.provide(statusOf(device), other.context), ["online", 3])
    assert.deepInclude(yield* connected.postProperties({ on: 1 }), { code: 200 })
    assert.strictEqual(yield* moved.closed, "replaced")
    assert.deepStrictEqual(yield* Effect.provide(statusOf(left), other.context), ["online", 3])
    yield* Effect.all([frozen.stop, other.stop])
  }).pipe(Effect.provide(stores)))

it.effect("a device that moves to another node stays online when its old connection ends", () =>
  Effect.gen(function*() {
    const [first, second] = [yield* startNode, yield* startNode]
    const device = yield* Effect.provide(createDevice, first.context)
    const old = yield* Effect.provide(SimulatedDevice.connect(device), first.context)
    yield* Effect.provide(SimulatedDevice.connect(device), second.context)
    yield* old.disconnect
    assert.deepStrictEqual(yield* Effect.provide(statusOf(device), first.context), ["online", 1])
    yield* first.stop
    assert.deepStrictEqual(yield* Effect.provide(statusOf(device), second.context), ["online", 1])
    yield* second.stop
  }).pipe(Effect.provide(stores)))

it.effect("a device without a connection that has said something stays online when the clock of the store jumps", () =>
  Effect.gen(function*() {
    const clock = yield* Clock.Clock
    let ahead = 0
    const now = () => clock.currentTimeMillisUnsafe() + ahead
    const jumping: Clock.Clock = Object.assign(Object.create(clock), {
      currentTimeMillisUnsafe: now,
      currentTimeMillis: Effect.sync(now)
    })
    yield* Effect.gen(function*() {
      const [node, other] = [yield* startNode, yield* startNode]
      const device = yield* Effect.provide(createDevice, node.context)
      const product = yield* Effect.provide(
        Effect.flatMap(Products, (products) => products.get(defaultProjectId, device.productKey)),
        node.context
      )
      yield* Effect.provide(
        Effect.flatMap(
          DeviceSessions,
          (sessions) => sessions.markSeen(deviceIdentity({ device, product }), "192.0.2.1")
        ),
        node.context
      )
      for (const jump of [3_600_000, 0]) {
        ahead = jump
        for (let second = 0; second < 60; second++) yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* Effect.provide(statusOf(device), other.context), ["online", 1])
      }
      yield* Effect.all([node.stop, other.stop])
    }).pipe(
      Effect.provide(
        StorageMemory.layer.pipe(
          Layer.provide(Layer.succeed(Clock.Clock, jumping)),
          Layer.provideMerge(PlatformNode.layer)
        )
      )
    )
  }))

it.effect("a device without a connection is online for five minutes after it has said something", () =>
  Effect.gen(function*() {
    const node = yield* startNode
    const { context } = node
    const device = yield* Effect.provide(createDevice, context)
    const identity = deviceIdentity({
      device,
      product: yield* Effect.provide(
        Effect.flatMap(Products, (products) => products.get(defaultProjectId, device.productKey)),
        context
      )
    })
    const speak = Effect.provide(
      Effect.flatMap(DeviceSessions, (sessions) => sessions.markSeen(identity, "192.0.2.1")),
      context
    )
    const status = Effect.provide(statusOf(device), context)
    assert.deepStrictEqual(yield* status, ["unactive", 0])
    yield* speak
    assert.deepStrictEqual(yield* status, ["online", 1])
    yield* TestClock.adjust("4 minutes")
    yield* speak
    yield* TestClock.adjust("290 seconds")
    assert.deepStrictEqual(yield* status, ["online", 1])
    yield* TestClock.adjust("15 seconds")
    assert.deepStrictEqual(yield* status, ["offline", 2])
    yield* speak
    // Its connection counts from now on, and ends by itself.
    const connected = yield* Effect.provide(SimulatedDevice.connect(device), context)
    yield* speak
    yield* TestClock.adjust("10 minutes")
    assert.deepStrictEqual(yield* status, ["online", 3])
    yield* connected.disconnect
    assert.deepStrictEqual(yield* status, ["offline", 4])
    yield* node.stop
  }).pipe(Effect.provide(stores)))

it.effect("a device that speaks without a connection is online again after its connection has ended, or it was set offline, on another node", () =>
  Effect.gen(function*() {
    const [first, second] = [yield* startNode, yield* startNode]
    const device = yield* Effect.provide(createDevice, first.context)
    const identity = deviceIdentity({
      device,
      product: yield* Effect.provide(
        Products.use((products) => products.get(defaultProjectId, device.productKey)),
        first.context
      )
    })
    const speak = Effect.provide(DeviceSessions.use(({ markSeen }) => markSeen(identity, "192.0.2.1")), first.context)
    const setOffline = Effect.provide(
      DeviceSessions.use(({ markOffline }) => markOffline([device.deviceId], "test")),
      second.context
    )
    const status = Effect.provide(statusOf(device), first.context)
    yield* speak
    const connected = yield* Effect.provide(SimulatedDevice.connect(device), second.context)
    assert.deepStrictEqual(yield* status, ["online", 1])
    yield* TestClock.adjust("1 second")
    yield* connected.disconnect
    assert.deepStrictEqual(yield* status, ["offline", 2])
    yield* speak
    assert.deepStrictEqual(yield* status, ["online", 3])
    yield* TestClock.adjust("1 minute")
    // This node only remembers it.
    yield* speak
    yield* setOffline
    assert.deepStrictEqual(yield* status, ["offline", 4])
    yield* TestClock.adjust("6 minutes")
    assert.deepStrictEqual(yield* status, ["offline", 4])
    yield* speak
    yield* setOffline
    yield* TestClock.adjust("1 second")
    yield* speak
    assert.deepStrictEqual(yield* status, ["online", 7])
    yield* Effect.all([first.stop, second.stop])
  }).pipe(Effect.provide(stores)))

it.effect("a device that speaks without a connection is online again after the answer that it is offline was lost", () => {
  let isLost = false
  return Effect.gen(function*() {
    const device = yield* createDevice
    const product = yield* Products.use((products) => products.get(defaultProjectId, device.productKey))
    const { markOffline, markSeen } = yield* DeviceSessions
    const speak = markSeen(deviceIdentity({ device, product }), "192.0.2.1")
    yield* speak
    isLost = true
    assert.instanceOf(yield* Effect.flip(markOffline([device.deviceId], "test")), StoreError)
    isLost = false
    assert.deepStrictEqual(yield* statusOf(device), ["offline", 2])
    yield* TestClock.adjust("1 second")
    yield* speak
    assert.deepStrictEqual(yield* statusOf(device), ["online", 3])
  }).pipe(Effect.provide(cloudWith({ on: "FeedStore.commit", does: "loseAnswer", calls: () => isLost })))
})
