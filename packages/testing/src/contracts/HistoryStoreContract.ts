/**
 * The laws of `HistoryStore`, and of what `UplinkStore` writes for it.
 */
import {
  type DeviceCloud,
  DeviceId,
  DeviceStore,
  type EventRecord,
  type HistoryRange,
  HistoryStore,
  type Json,
  type PropertySample,
  type Shadow,
  type UplinkFacts,
  UplinkStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, type Layer } from "effect"
import { epoch, insertDevice } from "./Samples.ts"

const all: HistoryRange = { start: 0, end: 8.64e15, limit: 1000, order: "asc" }

const sample = (time: number, value: Json, propertyId = "t"): PropertySample => ({ propertyId, time, value })

const event = (time: number, value: Json, eventId = "e"): EventRecord => ({ eventId, time, value })

const noFacts: UplinkFacts = { samples: [], events: [], reactions: [] }

const add = (
  deviceId: DeviceId,
  facts: Partial<UplinkFacts>,
  change: (shadow: Shadow) => Shadow = (shadow) => shadow
) =>
  UplinkStore.use((store) =>
    store.commit({
      devices: [{ deviceId, update: (shadow) => [undefined, change(shadow), { ...noFacts, ...facts }] }],
      commands: []
    })
  )

const nextVersion = (shadow: Shadow): Shadow => ({ ...shadow, version: shadow.version + 1, updatedAt: epoch })

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(stores, { excludeTestServices: true })(`HistoryStore: ${name}`, (it) => {
    it.effect("reads by time, what came first at the same time first, and the reverse", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const { device: { deviceId } } = yield* insertDevice
        const samples = [sample(30, "c"), sample(10, "a"), sample(20, "b1"), sample(20, "b2"), sample(5, "x", "other")]
        yield* add(deviceId, { samples }, nextVersion)
        const values = (range: Partial<HistoryRange>) =>
          Effect.map(store.samples(deviceId, "t", { ...all, ...range }), (found) => found.map(({ value }) => value))
        assert.deepStrictEqual(yield* values({}), ["a", "b1", "b2", "c"])
        assert.deepStrictEqual(yield* values({ order: "desc" }), ["c", "b2", "b1", "a"])
        assert.deepStrictEqual(yield* values({ start: 20, end: 20 }), ["b1", "b2"])
        assert.deepStrictEqual(yield* values({ start: 11, end: 19 }), [])
        assert.deepStrictEqual(yield* values({ limit: 2 }), ["a", "b1"])
        assert.deepStrictEqual(yield* values({ limit: 1, order: "desc" }), ["c"])
        assert.deepStrictEqual(yield* store.samples(deviceId, "missing", all), [])
        assert.deepStrictEqual(yield* store.samples(DeviceId.make("missing"), "t", all), [])
      }))

    it.effect("keeps every JSON value exactly, and times to the millisecond", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const { device: { deviceId } } = yield* insertDevice
        const values: ReadonlyArray<Json> = [null, false, 1e-300, "NUL \0, half \ud800", [1, [{}]], { "": { a: null } }]
        const samples = values.map((value, i) => sample(epoch + i, value))
        const events = values.map((value, i) => event(epoch + i, value))
        yield* add(deviceId, { samples, events }, nextVersion)
        assert.deepStrictEqual(yield* store.samples(deviceId, "t", all), samples)
        assert.deepStrictEqual(yield* store.events(deviceId, undefined, all), events)
        yield* add(deviceId, { samples: [sample(8.64e15, 1, "far"), sample(0, 0, "far")] }, nextVersion)
        assert.deepStrictEqual((yield* store.samples(deviceId, "far", all)).map(({ time }) => time), [0, 8.64e15])
      }))

    it.effect("adds facts also when the shadow stays as it is", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const { device: { deviceId } } = yield* insertDevice
        yield* add(deviceId, { events: [event(1, {}, "a"), event(2, {}, "b"), event(3, {}, "a")] })
        assert.deepStrictEqual((yield* store.events(deviceId, undefined, all)).map(({ time }) => time), [1, 2, 3])
        assert.deepStrictEqual((yield* store.events(deviceId, "a", all)).map(({ time }) => time), [1, 3])
      }))

    it.effect("adds the facts of each of many concurrent changes once", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const { device: { deviceId } } = yield* insertDevice
        yield* Effect.forEach(
          Array.from({ length: 20 }),
          (_, i) => add(deviceId, { samples: [sample(i, i)], events: [event(i, i)] }, nextVersion),
          { concurrency: "unbounded" }
        )
        const expected = Array.from({ length: 20 }, (_, i) => i)
        assert.deepStrictEqual((yield* store.samples(deviceId, "t", all)).map(({ value }) => value), expected)
        assert.deepStrictEqual((yield* store.events(deviceId, "e", all)).map(({ value }) => value), expected)
      }))

    it.effect("forgets what was stored before an instant, a part at a time", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const { device: { deviceId } } = yield* insertDevice
        const later = (yield* Clock.currentTimeMillis) + 60_000
        while ((yield* store.prune({ storedBefore: later, limit: 1000 })) > 0) { /* what other tests have left */ }
        yield* add(deviceId, { samples: [sample(1, 1), sample(2, 2), sample(3, 3)], events: [event(1, 1)] })
        assert.strictEqual(yield* store.prune({ storedBefore: epoch, limit: 1000 }), 0)
        const pruned: Array<number> = []
        while (pruned.at(-1) !== 0) pruned.push(yield* store.prune({ storedBefore: later, limit: 2 }))
        assert.strictEqual(pruned.reduce((sum, count) => sum + count, 0), 4)
        assert.deepStrictEqual(yield* store.samples(deviceId, "t", all), [])
        assert.deepStrictEqual(yield* store.events(deviceId, undefined, all), [])
      }))

    it.effect("forgets the history of a device with it", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const { device: { deviceId, projectId } } = yield* insertDevice
        yield* add(deviceId, { samples: [sample(1, 1)], events: [event(1, 1)] }, nextVersion)
        yield* (yield* DeviceStore).remove(projectId, deviceId)
        assert.deepStrictEqual(yield* store.samples(deviceId, "t", all), [])
        assert.deepStrictEqual(yield* store.events(deviceId, undefined, all), [])
      }))
  })
