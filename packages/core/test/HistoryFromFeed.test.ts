import {
  defaultProjectId,
  DeviceCloud,
  type DeviceId,
  Devices,
  FeedReaderStore,
  HistoryFromFeed,
  HistoryStore,
  StoreError
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer, Logger, Ref } from "effect"
import { TestClock } from "effect/testing"

class Probe extends Context.Service<Probe, {
  readonly isAway: Ref.Ref<boolean>
  /** Whether the place is lost that would be stored next. */
  readonly losesPlace: Ref.Ref<boolean>
  readonly appends: Ref.Ref<number>
  /** The history of the storage, which must stay empty. */
  readonly beside: HistoryStore["Service"]
}>()("test/Probe") {}

const storage = Layer.effectContext(Effect.gen(function*() {
  const stores = yield* Layer.build(StorageMemory.layer)
  const apart = Context.get(
    yield* Layer.build(StorageMemory.layerHistoryStore.pipe(Layer.provide(Layer.fresh(StorageMemory.layerTables)))),
    HistoryStore
  )
  const readers = Context.get(stores, FeedReaderStore)
  const isAway = yield* Ref.make(false)
  const losesPlace = yield* Ref.make(false)
  const appends = yield* Ref.make(0)
  const failure = new StoreError({ operation: "test", retryable: true, cause: "away" })
  return stores.pipe(
    Context.add(Probe, { isAway, losesPlace, appends, beside: Context.get(stores, HistoryStore) }),
    Context.add(FeedReaderStore, {
      ...readers,
      advance: (options) =>
        Effect.flatMap(
          Ref.getAndSet(losesPlace, false),
          (loses) => loses ? failure : readers.advance(options)
        )
    }),
    Context.add(HistoryStore, {
      ...apart,
      append: (additions) =>
        Effect.flatMap(
          Ref.get(isAway),
          (isAway) => isAway ? failure : Effect.tap(apart.append(additions), () => Ref.update(appends, (n) => n + 1))
        )
    })
  )
}))

const cloud = DeviceCloud.layer.pipe(
  Layer.provideMerge(HistoryFromFeed.layer),
  Layer.provideMerge(storage),
  Layer.provideMerge(PlatformNode.layer),
  Layer.provide(Logger.layer([]))
)

const connect = Effect.gen(function*() {
  const product = yield* Fixtures.createProduct({ validateType: "none" })
  const { device, postProperties } = yield* SimulatedDevice.connect(yield* Fixtures.createDevice(product))
  return { device, report: (a: number) => postProperties({ a }) }
})

const valuesIn = (store: HistoryStore["Service"], deviceId: DeviceId) =>
  Effect.map(
    store.samples(deviceId, "a", { start: 0, end: 8.64e15, limit: 10, order: "asc" }),
    (samples) => samples.map(({ value }) => value)
  )

const values = (deviceId: DeviceId) => HistoryStore.use((store) => valuesIn(store, deviceId))

it.effect("what devices report comes to the other store, and to that alone", () =>
  Effect.gen(function*() {
    const { device: { deviceId }, report } = yield* connect
    yield* report(1)
    yield* report(2)
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(yield* values(deviceId), [1, 2])
    assert.deepStrictEqual(yield* valuesIn((yield* Probe).beside, deviceId), [])
  }).pipe(Effect.provide(cloud)))

it.effect("devices get their replies while the store is away, and it has all when it is back", () =>
  Effect.gen(function*() {
    const { isAway } = yield* Probe
    const { device: { deviceId }, report } = yield* connect
    yield* Ref.set(isAway, true)
    for (const value of [1, 2, 3]) assert.strictEqual((yield* report(value)).code, 200)
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(yield* values(deviceId), [])
    yield* Ref.set(isAway, false)
    yield* TestClock.adjust("6 seconds")
    assert.deepStrictEqual(yield* values(deviceId), [1, 2, 3])
  }).pipe(Effect.provide(cloud)))

it.effect("what was appended before its place was stored is appended again, and is there once", () =>
  Effect.gen(function*() {
    const { appends, losesPlace } = yield* Probe
    const { device: { deviceId }, report } = yield* connect
    yield* TestClock.adjust("1 second")
    const before = yield* Ref.get(appends)
    yield* Ref.set(losesPlace, true)
    yield* report(1)
    yield* report(2)
    yield* TestClock.adjust("6 seconds")
    assert.isAbove(yield* Ref.get(appends), before + 1)
    assert.deepStrictEqual(yield* values(deviceId), [1, 2])
  }).pipe(Effect.provide(cloud)))

it.effect("a device is deleted while the store is away; its history goes when the feed has come so far", () =>
  Effect.gen(function*() {
    const { isAway } = yield* Probe
    const [gone, left] = [yield* connect, yield* connect]
    yield* gone.report(1)
    yield* left.report(2)
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(yield* values(gone.device.deviceId), [1])
    yield* Ref.set(isAway, true)
    yield* gone.report(3)
    yield* (yield* Devices).remove(defaultProjectId, gone.device.deviceId)
    yield* Ref.set(isAway, false)
    yield* TestClock.adjust("6 seconds")
    assert.deepStrictEqual(yield* values(gone.device.deviceId), [])
    assert.deepStrictEqual(yield* values(left.device.deviceId), [2])
  }).pipe(Effect.provide(cloud)))
