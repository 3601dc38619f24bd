import {
  defaultProjectId,
  DeviceCloud,
  Devices,
  HistoryApart,
  HistoryStore,
  StoreError,
  UplinkStore
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Ref } from "effect"
import { TestClock } from "effect/testing"

/** What the history store does with a call that changes it. */
type Mode = "open" | "passing" | "broken"

class Probe extends Context.Service<Probe, {
  readonly mode: Ref.Ref<Mode>
  readonly commits: Ref.Ref<number>
  /** The history of the storage, which must stay empty. */
  readonly beside: HistoryStore["Service"]
}>()("test/Probe") {}

const unlessClosed = (current: Ref.Ref<Mode>) =>
  Effect.flatMap(Ref.get(current), (mode) =>
    mode === "open"
      ? Effect.void
      : new StoreError({ operation: "history", retryable: mode === "passing", cause: mode }))

const storage = Layer.effectContext(Effect.gen(function*() {
  const stores = yield* Layer.build(StorageMemory.layer)
  const uplink = Context.get(stores, UplinkStore)
  const apart = Context.get(
    yield* Layer.build(StorageMemory.layerHistoryStore.pipe(Layer.provide(Layer.fresh(StorageMemory.layerTables)))),
    HistoryStore
  )
  const mode = yield* Ref.make<Mode>("open")
  const commits = yield* Ref.make(0)
  return stores.pipe(
    Context.add(Probe, { mode, commits, beside: Context.get(stores, HistoryStore) }),
    Context.add(UplinkStore, {
      commit: (batch) => Effect.andThen(Ref.update(commits, (count) => count + 1), uplink.commit(batch))
    }),
    Context.add(HistoryStore, {
      ...apart,
      append: (additions) => Effect.andThen(unlessClosed(mode), apart.append(additions)),
      remove: (deviceIds) => Effect.andThen(unlessClosed(mode), apart.remove(deviceIds))
    })
  )
}))

const cloud = DeviceCloud.layer.pipe(
  Layer.provideMerge(HistoryApart.layer),
  Layer.provideMerge(storage),
  Layer.provideMerge(PlatformNode.layer)
)

const connect = Effect.gen(function*() {
  const product = yield* Fixtures.createProduct({ validateType: "none" })
  const device = yield* SimulatedDevice.connect(yield* Fixtures.createDevice(product))
  const { deviceId } = device.device
  const valuesIn = (store: HistoryStore["Service"]) =>
    Effect.map(
      store.samples(deviceId, "a", { start: 0, end: 8.64e15, limit: 10, order: "asc" }),
      (samples) => samples.map(({ value }) => value)
    )
  return { deviceId, report: (a: number) => device.postProperties({ a }), valuesIn }
})

it.effect("the history of a commit is in the other store alone", () =>
  Effect.gen(function*() {
    const { beside } = yield* Probe
    const { report, valuesIn } = yield* connect
    assert.strictEqual((yield* report(1)).code, 200)
    assert.deepStrictEqual(yield* valuesIn(yield* HistoryStore), [1])
    assert.deepStrictEqual(yield* valuesIn(beside), [])
  }).pipe(Effect.provide(cloud)))

it.effect("a report waits for a history store that is out of reach, and is committed once", () =>
  Effect.gen(function*() {
    const { commits, mode } = yield* Probe
    const { report, valuesIn } = yield* connect
    yield* Ref.set(mode, "passing")
    const reported = yield* Effect.forkChild(report(1))
    yield* TestClock.adjust("1 minute")
    assert.isUndefined(reported.pollUnsafe())
    yield* Ref.set(mode, "open")
    yield* TestClock.adjust("1 second")
    assert.strictEqual((yield* Fiber.join(reported)).code, 200)
    assert.deepStrictEqual(yield* valuesIn(yield* HistoryStore), [1])
    assert.strictEqual(yield* Ref.get(commits), 1)
  }).pipe(Effect.provide(cloud)))

it.effect("a failure that cannot pass leaves reports without a reply, and repeats no commit", () =>
  Effect.gen(function*() {
    const { commits, mode } = yield* Probe
    const [first, second] = [yield* connect, yield* connect]
    yield* Ref.set(mode, "broken")
    const exits = yield* Effect.all([Effect.exit(first.report(1)), Effect.exit(second.report(1))], {
      concurrency: "unbounded"
    })
    assert.isTrue(exits.every(Exit.isFailure))
    const committed = yield* Ref.get(commits)
    assert.isAtMost(committed, 2)
    yield* Ref.set(mode, "open")
    // The device says it again, as it does without a reply.
    assert.strictEqual((yield* first.report(1)).code, 200)
    assert.deepStrictEqual(yield* first.valuesIn(yield* HistoryStore), [1])
    assert.strictEqual(yield* Ref.get(commits), committed + 1)
  }).pipe(Effect.provide(cloud)))

it.effect("a device is deleted with its history, and not while its history cannot be removed", () =>
  Effect.gen(function*() {
    const { mode } = yield* Probe
    const devices = yield* Devices
    const store = yield* HistoryStore
    const { deviceId, report, valuesIn } = yield* connect
    const other = yield* connect
    yield* report(1)
    yield* other.report(2)
    yield* Ref.set(mode, "broken")
    assert.strictEqual((yield* Effect.flip(devices.remove(defaultProjectId, deviceId)))._tag, "StoreError")
    assert.strictEqual((yield* devices.get(defaultProjectId, { deviceId })).device.status, "online")
    yield* Ref.set(mode, "open")
    yield* devices.remove(defaultProjectId, deviceId)
    assert.deepStrictEqual(yield* valuesIn(store), [])
    assert.deepStrictEqual(yield* other.valuesIn(store), [2])
  }).pipe(Effect.provide(cloud)))
