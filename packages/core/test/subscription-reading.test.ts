import {
  defaultProjectId,
  DeviceCloud,
  type FeedEntry,
  FeedStore,
  SubscriptionReader,
  Subscriptions,
  SubscriptionStore
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"

const cloud = DeviceCloud.layer.pipe(Layer.provideMerge(StorageMemory.layer), Layer.provideMerge(PlatformNode.layer))

/** A subscription to the reports of one of two connected devices. */
const subscribed = Effect.gen(function*() {
  const product = yield* Fixtures.createProduct({ validateType: "none" })
  const [device, other] = yield* Effect.forEach(
    [1, 2],
    () => Effect.flatMap(Fixtures.createDevice(product), SimulatedDevice.connect)
  )
  const subscriptions = yield* Subscriptions
  const reader = yield* SubscriptionReader
  const store = yield* SubscriptionStore
  const { subscriptionId } = yield* subscriptions.create(defaultProjectId, {
    name: "Reports",
    filter: { kinds: ["PropertiesReported"], deviceIds: [device!.device.deviceId] }
  })
  const own = { projectId: defaultProjectId, subscriptionId, worker: "one", limit: 10 }
  return {
    device: device!,
    other: other!,
    subscriptionId,
    subscriptions,
    acknowledge: (cursor: string) => reader.acknowledge(own, cursor),
    /** Reads, and lets the time of waiting pass. */
    read: Effect.fnUntraced(
      function*(options: { cursor?: string; delivered?: string; wait?: number } = {}) {
        const { wait = 0 } = options
        const reading = yield* Effect.forkChild(reader.read({ ...own, cursor: undefined, ...options, wait }))
        yield* Effect.repeat(TestClock.adjust("500 millis"), { times: wait / 500 })
        return yield* Fiber.join(reading)
      }
    ),
    places: Effect.map(
      store.get(defaultProjectId, subscriptionId),
      (stored) => new Set(Option.getOrThrow(stored).progress.shards.map(({ place }) => place))
    )
  }
})

it.effect("the place moves on by itself over events that are not for the subscription", () =>
  Effect.gen(function*() {
    const { acknowledge, device, other, places, read } = yield* subscribed
    const [before] = yield* places
    yield* other.postProperties({ n: 1 })
    const nothing = yield* read()
    assert.deepStrictEqual(nothing.entries, [])
    const [moved, ...rest] = yield* places
    assert.isEmpty(rest)
    assert.isAbove(Number.parseInt(moved!, 36), Number.parseInt(before!, 36))

    // Not over an event that was delivered and is not acknowledged.
    yield* device.postProperties({ n: 2 })
    const { cursor, entries } = yield* read()
    assert.strictEqual(entries.length, 1)
    yield* other.postProperties({ n: 3 })
    const ahead = yield* read({ cursor, delivered: entries[0]!.id, wait: 8000 })
    assert.deepStrictEqual(ahead.entries, [])
    assert.deepStrictEqual(yield* places, new Set([moved]))
    yield* acknowledge(cursor)
    assert.deepStrictEqual(yield* places, new Set([entries[0]!.id]))
    const further = yield* read({ cursor: ahead.cursor, delivered: entries[0]!.id, wait: 8000 })
    assert.deepStrictEqual(yield* places, new Set([further.cursor.split("-")[1]!]))
    assert.isAbove(Number.parseInt(further.cursor.split("-")[1]!, 36), Number.parseInt(entries[0]!.id, 36))
  }).pipe(Effect.scoped, Effect.provide(cloud)))

it.effect("a worker without a right name, a limit and a time of waiting out of bounds are named, and move nothing", () =>
  Effect.gen(function*() {
    const { device, places, read, subscriptionId } = yield* subscribed
    const reader = yield* SubscriptionReader
    const before = yield* places
    yield* device.postProperties({ n: 1 })
    const refusal = (limit: number, wait: number, worker = "one") =>
      Effect.map(
        Effect.flip(
          reader.read({ projectId: defaultProjectId, subscriptionId, worker, cursor: undefined, limit, wait })
        ),
        ({ message }) => message
      )
    for (const worker of ["", " ", "w".repeat(65), "\0", 12 as unknown as string]) {
      assert.match(yield* refusal(1, 0, worker), /^worker: /)
    }
    for (const limit of [0, -1, 1.5, 1001, Number.NaN]) assert.match(yield* refusal(limit, 0), /^limit: /)
    for (const wait of [-1, 30_001, Number.NaN, Infinity]) assert.match(yield* refusal(1, wait), /^wait: /)
    assert.deepStrictEqual(yield* places, before)
    assert.strictEqual((yield* read()).entries.length, 1)
  }).pipe(Effect.scoped, Effect.provide(cloud)))

it.effect("who waits gets an event as soon as it is there, and nothing is missed in between", () =>
  Effect.gen(function*() {
    const { acknowledge, device, read } = yield* subscribed
    const seen: Array<unknown> = []
    for (let n = 0; n < 20; n++) {
      const reading = yield* Effect.forkChild(read({ wait: 20_000 }))
      if (n % 2 === 0) yield* TestClock.adjust(n * 10)
      yield* device.postProperties({ n })
      const { cursor, entries } = yield* Fiber.join(reading)
      seen.push(...entries.map(({ event }) => event._tag === "PropertiesReported" && event.properties["n"]?.value))
      yield* acknowledge(cursor)
    }
    assert.deepStrictEqual(seen, Array.from({ length: 20 }, (_, n) => n))
  }).pipe(Effect.scoped, Effect.provide(cloud)))

it.effect("who waits gets events of the devices that a new filter names", () =>
  Effect.gen(function*() {
    const { other, read, subscriptionId, subscriptions } = yield* subscribed
    const reading = yield* Effect.forkChild(read({ wait: 20_000 }))
    yield* TestClock.adjust("1 second")
    yield* subscriptions.change(defaultProjectId, subscriptionId, {
      filter: { kinds: ["PropertiesReported"], deviceIds: [other.device.deviceId] }
    })
    yield* TestClock.adjust("5 seconds")
    yield* other.postProperties({ n: 1 })
    const { entries } = yield* Fiber.join(reading)
    assert.deepStrictEqual(entries.map(({ event }) => event.device?.deviceId), [other.device.deviceId])
  }).pipe(Effect.scoped, Effect.provide(cloud)))

it.effect("who waits misses nothing that a new filter admits and the one before does not", () =>
  Effect.gen(function*() {
    const { device, other, read, subscriptionId, subscriptions } = yield* subscribed
    const change = (...devices: ReadonlyArray<typeof device>) =>
      subscriptions.change(defaultProjectId, subscriptionId, {
        filter: { kinds: ["PropertiesReported"], deviceIds: devices.map(({ device }) => device.deviceId) }
      })
    const devicesOf = ({ entries }: { readonly entries: ReadonlyArray<FeedEntry> }) =>
      entries.map(({ event }) => event.device?.deviceId)

    const reading = yield* Effect.forkChild(read({ wait: 20_000 }))
    yield* TestClock.adjust("1 second")
    yield* change(other)
    yield* other.postProperties({ n: 1 })
    const first = yield* Fiber.join(reading)
    assert.deepStrictEqual(devicesOf(first), [other.device.deviceId])

    const again = yield* Effect.forkChild(read({ cursor: first.cursor, wait: 20_000 }))
    yield* TestClock.adjust("1 second")
    yield* change(device, other)
    yield* device.postProperties({ n: 2 })
    yield* other.postProperties({ n: 3 })
    assert.deepStrictEqual(devicesOf(yield* Fiber.join(again)), [device.device.deviceId, other.device.deviceId])
  }).pipe(Effect.scoped, Effect.provide(cloud)))

it.effect("events that were forgotten before they were read are a gap, once", () =>
  Effect.gen(function*() {
    const { device, read, subscriptionId, subscriptions } = yield* subscribed
    for (const n of [1, 2]) yield* device.postProperties({ n })
    const lag = Effect.map(subscriptions.get(defaultProjectId, subscriptionId), ({ lag }) => lag)
    assert.deepInclude(yield* lag, { events: 2, hasMore: false, isGap: false })
    yield* TestClock.adjust("2 minutes")
    yield* (yield* FeedStore).prune({ keepMillis: 60_000, maxBytes: 1e9, isHistoryApart: false })
    assert.deepInclude(yield* lag, { events: 0, oldestAt: null, isGap: true })
    const gap = yield* read({ wait: 10_000 })
    assert.deepInclude(gap, { entries: [], isGap: true })
    assert.isFalse((yield* read()).isGap)
    assert.isFalse((yield* lag).isGap)
    yield* device.postProperties({ n: 3 })
    const { entries, isGap } = yield* read()
    assert.deepStrictEqual([entries.length, isGap], [1, false])
  }).pipe(Effect.scoped, Effect.provide(cloud)))
