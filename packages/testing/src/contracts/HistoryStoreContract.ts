/**
 * The laws of `HistoryStore`, and of the history that `UplinkStore` writes for
 * it.
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
  ShadowStore,
  type StoreError,
  type UplinkFacts,
  UplinkStore
} from "@device-cloud/core"
import { assert, layer, type Vitest } from "@effect/vitest"
import { Clock, Effect, type Layer, Option } from "effect"
import { epoch, insertDevice, unique } from "./Samples.ts"

/** Runs the laws of the port. The store may stand alone. */
export const suite = <E>(name: string, history: Layer.Layer<HistoryStore, E>): void =>
  layer(history, { excludeTestServices: true })(`HistoryStore: ${name}`, (it) => {
    const newDeviceId = Effect.sync(() => DeviceId.make(unique("apart")))
    laws(it, {
      newDeviceId,
      add: (deviceId, { events = [], samples = [] }) =>
        HistoryStore.use((store) => store.append([{ deviceId, samples, events }]))
    })

    it.effect("appends entries of several devices, and none", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const [first, second] = [yield* newDeviceId, yield* newDeviceId]
        yield* store.append([
          { deviceId: first, samples: [sample(1, 1)], events: [event(1, 1)] },
          { deviceId: second, samples: [sample(2, 2)], events: [] }
        ])
        yield* store.append([])
        yield* store.append([{ deviceId: second, samples: [], events: [] }])
        assert.deepStrictEqual(yield* store.samples(first, "t", all), [sample(1, 1)])
        assert.deepStrictEqual(yield* store.events(first, undefined, all), [event(1, 1)])
        assert.deepStrictEqual(yield* store.samples(second, "t", all), [sample(2, 2)])
        assert.deepStrictEqual(yield* store.events(second, undefined, all), [])
      }))

    it.effect("leaves out entries of an earlier call, and stores equal entries of one call", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const deviceId = yield* newDeviceId
        const first = {
          deviceId,
          samples: [sample(1, { a: 1 }), sample(1, { a: 1 }), sample(1, "1")],
          events: [event(1, {}), event(1, {})]
        }
        yield* store.append([first])
        // As when the outcome of the first call is not known.
        yield* store.append([first, { deviceId, samples: [sample(1, 1), sample(2, "1")], events: [event(1, {}, "f")] }])
        assert.deepStrictEqual(
          (yield* store.samples(deviceId, "t", all)).map(({ time, value }) => [time, value]),
          [[1, { a: 1 }], [1, { a: 1 }], [1, "1"], [1, 1], [2, "1"]]
        )
        assert.deepStrictEqual(
          (yield* store.events(deviceId, undefined, all)).map(({ eventId }) => eventId),
          ["e", "e", "f"]
        )
      }))

    it.effect("removes the entries of some devices, of which it may have none", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const [gone, left, unknown] = [yield* newDeviceId, yield* newDeviceId, yield* newDeviceId]
        yield* store.append(
          [gone, left].map((deviceId) => ({ deviceId, samples: [sample(1, 1)], events: [event(1, 1)] }))
        )
        yield* store.remove([gone, unknown])
        yield* store.remove([])
        assert.deepStrictEqual(yield* store.samples(gone, "t", all), [])
        assert.deepStrictEqual(yield* store.events(gone, undefined, all), [])
        assert.deepStrictEqual(yield* store.samples(left, "t", all), [sample(1, 1)])
        assert.deepStrictEqual(yield* store.events(left, undefined, all), [event(1, 1)])
      }))
  })

/** Runs the laws of the history that commits write, on a storage that keeps it beside the shadows. */
export const suiteOfCommits = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(stores, { excludeTestServices: true })(`The history of commits: ${name}`, (it) => {
    laws(it, {
      newDeviceId: Effect.map(insertDevice, ({ device }) => device.deviceId),
      add: (deviceId, facts) => commit(deviceId, facts, nextVersion)
    })

    it.effect("adds facts also when the shadow stays as it is", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const { device: { deviceId } } = yield* insertDevice
        yield* commit(deviceId, { events: [event(1, {}, "a"), event(2, {}, "b"), event(3, {}, "a")] })
        assert.deepStrictEqual((yield* store.events(deviceId, undefined, all)).map(({ time }) => time), [1, 2, 3])
        assert.deepStrictEqual((yield* store.events(deviceId, "a", all)).map(({ time }) => time), [1, 3])
      }))

    it.effect("adds the facts of each of many concurrent changes once", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const { device: { deviceId } } = yield* insertDevice
        yield* Effect.forEach(
          Array.from({ length: 20 }),
          (_, i) => commit(deviceId, { samples: [sample(i, i)], events: [event(i, i)] }, nextVersion),
          { concurrency: "unbounded" }
        )
        const expected = Array.from({ length: 20 }, (_, i) => i)
        assert.deepStrictEqual((yield* store.samples(deviceId, "t", all)).map(({ value }) => value), expected)
        assert.deepStrictEqual((yield* store.events(deviceId, "e", all)).map(({ value }) => value), expected)
      }))

    it.effect("runs all updates again while the batch is not complete, and stores what they return in the end", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const [first, second] = [yield* insertDevice, yield* insertDevice].map(({ device }) => device.deviceId)
        let isRefused = false
        const results = yield* (yield* UplinkStore).commit({
          devices: [first!, second!].map((deviceId) => ({
            deviceId,
            update: (shadow) => {
              const samples = isRefused ? [] : [sample(1, deviceId)]
              return [isRefused, isRefused ? shadow : nextVersion(shadow), {
                samples,
                events: [event(1, {})],
                reactions: []
              }]
            }
          })),
          commands: [],
          isComplete: () => {
            const wasRefused = isRefused
            isRefused = true
            return wasRefused
          }
        })
        assert.deepStrictEqual(results, [Option.some(true), Option.some(true)])
        for (const deviceId of [first!, second!]) {
          assert.deepStrictEqual(yield* store.samples(deviceId, "t", all), [])
          assert.lengthOf(yield* store.events(deviceId, undefined, all), 1)
          assert.strictEqual(Option.getOrThrow(yield* (yield* ShadowStore).get(deviceId)).version, 0)
        }
      }))

    it.effect("forgets the history of a device with it", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const { device: { deviceId, projectId } } = yield* insertDevice
        yield* commit(deviceId, { samples: [sample(1, 1)], events: [event(1, 1)] }, nextVersion)
        yield* (yield* DeviceStore).remove(projectId, deviceId)
        assert.deepStrictEqual(yield* store.samples(deviceId, "t", all), [])
        assert.deepStrictEqual(yield* store.events(deviceId, undefined, all), [])
      }))
  })

const all: HistoryRange = { start: 0, end: 8.64e15, limit: 1000, order: "asc" }

const sample = (time: number, value: Json, propertyId = "t"): PropertySample => ({ propertyId, time, value })

const event = (time: number, value: Json, eventId = "e"): EventRecord => ({ eventId, time, value })

const commit = (
  deviceId: DeviceId,
  { events = [], samples = [] }: Partial<UplinkFacts>,
  change: (shadow: Shadow) => Shadow = (shadow) => shadow
) =>
  UplinkStore.use((store) =>
    store.commit({
      devices: [{ deviceId, update: (shadow) => [undefined, change(shadow), { samples, events, reactions: [] }] }],
      commands: []
    })
  )

const nextVersion = (shadow: Shadow): Shadow => ({ ...shadow, version: shadow.version + 1, updatedAt: epoch })

/** The laws that hold however entries come in. */
const laws = <R>(
  it: Vitest.MethodsNonLive<HistoryStore | R>,
  { add, newDeviceId }: {
    readonly newDeviceId: Effect.Effect<DeviceId, StoreError, HistoryStore | R>
    readonly add: (
      deviceId: DeviceId,
      entries: { readonly samples?: ReadonlyArray<PropertySample>; readonly events?: ReadonlyArray<EventRecord> }
    ) => Effect.Effect<unknown, StoreError, HistoryStore | R>
  }
): void => {
  it.effect("reads by time, what came first at the same time first, and the reverse", () =>
    Effect.gen(function*() {
      const store = yield* HistoryStore
      const deviceId = yield* newDeviceId
      const samples = [sample(30, "c"), sample(10, "a"), sample(20, "b1"), sample(20, "b2"), sample(5, "x", "other")]
      yield* add(deviceId, { samples })
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

  it.effect("reads events by time, all of them or those of one id", () =>
    Effect.gen(function*() {
      const store = yield* HistoryStore
      const deviceId = yield* newDeviceId
      yield* add(deviceId, { events: [event(2, "b"), event(1, "a", "f"), event(2, "c")] })
      const values = (eventId: string | undefined, range: Partial<HistoryRange> = {}) =>
        Effect.map(store.events(deviceId, eventId, { ...all, ...range }), (found) => found.map(({ value }) => value))
      assert.deepStrictEqual(yield* values(undefined), ["a", "b", "c"])
      assert.deepStrictEqual(yield* values(undefined, { order: "desc", limit: 2 }), ["c", "b"])
      assert.deepStrictEqual(yield* values("e"), ["b", "c"])
      assert.deepStrictEqual(yield* values("f", { start: 2 }), [])
    }))

  it.effect("keeps every JSON value exactly, and times to the millisecond", () =>
    Effect.gen(function*() {
      const store = yield* HistoryStore
      const deviceId = yield* newDeviceId
      const values: ReadonlyArray<Json> = [null, false, 1e-300, "NUL \0, half \ud800", [1, [{}]], { "": { a: null } }]
      const samples = values.map((value, i) => sample(epoch + i, value))
      const events = values.map((value, i) => event(epoch + i, value))
      yield* add(deviceId, { samples, events })
      assert.deepStrictEqual(yield* store.samples(deviceId, "t", all), samples)
      assert.deepStrictEqual(yield* store.events(deviceId, undefined, all), events)
      yield* add(deviceId, { samples: [sample(8.64e15, 1, "far"), sample(0, 0, "far")] })
      assert.deepStrictEqual((yield* store.samples(deviceId, "far", all)).map(({ time }) => time), [0, 8.64e15])
    }))

  it.effect("forgets what was stored before an instant, a part at a time", () =>
    Effect.gen(function*() {
      const store = yield* HistoryStore
      const deviceId = yield* newDeviceId
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
}
