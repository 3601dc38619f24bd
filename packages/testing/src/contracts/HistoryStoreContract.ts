/**
 * The laws of `HistoryStore`, and of the history that `UplinkStore` writes for
 * it.
 */
import {
  type DeviceCloud,
  DeviceId,
  DeviceName,
  DeviceStore,
  type EventRecord,
  type HistoryRange,
  HistoryStore,
  type Json,
  ProductKey,
  ProjectId,
  type PropertySample,
  type Shadow,
  ShadowStore,
  type StoreError,
  UplinkStore
} from "@device-cloud/core"
import { assert, layer, type Vitest } from "@effect/vitest"
import { Clock, Effect, type Layer, Option, Stream } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertDevice, reported, unique } from "./Samples.ts"

/** Runs the laws of the port. The store may stand alone. */
export const suite = <E>(name: string, history: Layer.Layer<HistoryStore, E>): void =>
  layer(detached(history), { excludeTestServices: true })(`HistoryStore: ${name}`, (it) => {
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

    it.effect("loses no entry of concurrent calls", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const devices = [yield* newDeviceId, yield* newDeviceId]
        const times = Array.from({ length: 20 }, (_, i) => i)
        yield* Effect.forEach(times, (time) =>
          store.append(
            devices.map((deviceId) => ({ deviceId, samples: [sample(time, time)], events: [event(time, 1)] }))
          ), {
          concurrency: "unbounded"
        })
        for (const deviceId of devices) {
          assert.deepStrictEqual(
            yield* store.samples(deviceId, "t", all),
            times.map((time) => sample(time, time))
          )
          assert.deepStrictEqual(yield* store.events(deviceId, undefined, all), times.map((time) => event(time, 1)))
        }
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

    it.effect("forgets what is older than it is to be kept", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const deviceId = yield* newDeviceId
        const now = yield* Clock.currentTimeMillis
        const [day, keepDays] = [86_400_000, 30]
        const times = Effect.gen(function*() {
          const samples = yield* store.samples(deviceId, "t", all)
          const events = yield* store.events(deviceId, undefined, all)
          assert.deepStrictEqual(events.map(({ time }) => time), samples.map(({ time }) => time))
          return samples.map(({ time }) => time)
        })
        yield* store.prune({ keepDays })
        const entries = [now - 40 * day, now - 20 * day, now, now + 300_000]
        yield* store.append([{
          deviceId,
          samples: entries.map((time) => sample(time, 1)),
          events: entries.map((time) => event(time, 1))
        }])
        yield* store.prune({ keepDays })
        assert.deepStrictEqual(yield* times, entries.slice(1))
        const pruneAfter = (days: number) => {
          const then = now + days * day
          return store.prune({ keepDays }).pipe(
            Effect.updateService(Clock.Clock, (clock) =>
              Object.assign(Object.create(clock), {
                currentTimeMillisUnsafe: () => then,
                currentTimeMillis: Effect.succeed(then)
              }))
          )
        }
        yield* pruneAfter(14)
        assert.deepStrictEqual(yield* times, entries.slice(2))
        // The month in which they were stored is over, too.
        yield* pruneAfter(keepDays + 32)
        assert.deepStrictEqual(yield* times, [])
        // 0: for ever.
        yield* store.prune({ keepDays: 0 })
        yield* store.append([{ deviceId, samples: [sample(1, 1)], events: [event(1, 1)] }])
        yield* store.prune({ keepDays: 0 })
        assert.deepStrictEqual(yield* times, [1])
      }))

    it.effect("removes the entries of some devices, of which it may have none", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const [gone, left, unknown] = [yield* newDeviceId, yield* newDeviceId, yield* newDeviceId]
        yield* store.append(
          [gone, left].map((deviceId) => ({ deviceId, samples: [sample(1, 1)], events: [event(1, 1)] }))
        )
        yield* store.remove([unknown, gone])
        yield* store.remove([])
        assert.deepStrictEqual(yield* store.samples(gone, "t", all), [])
        assert.deepStrictEqual(yield* store.devicesWithin([gone, left, unknown], all), [left])
        assert.deepStrictEqual(yield* store.events(gone, undefined, all), [])
        assert.deepStrictEqual(yield* store.samples(left, "t", all), [sample(1, 1)])
        assert.deepStrictEqual(yield* store.events(left, undefined, all), [event(1, 1)])
        yield* store.maintain
        assert.deepStrictEqual(yield* store.samples(gone, "t", all), [])
        assert.deepStrictEqual(yield* store.samples(left, "t", all), [sample(1, 1)])
      }))
  })

/** Runs the laws of the history that commits write, on a storage that keeps it beside the shadows. */
export const suiteOfCommits = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores), { excludeTestServices: true })(`The history of commits: ${name}`, (it) => {
    laws(it, {
      newDeviceId: Effect.map(insertDevice, ({ device }) => device.deviceId),
      add: (deviceId, entries) => commit({ ...stranger, deviceId }, entries, nextVersion)
    })

    it.effect("adds values of a message that a later value has replaced, before that value", () =>
      Effect.gen(function*() {
        const { device } = yield* insertDevice
        yield* UplinkStore.use((store) =>
          store.commit({
            devices: [{
              deviceId: device.deviceId,
              update: (shadow) => [undefined, nextVersion(shadow), {
                happened: [{
                  _tag: "PropertiesReported",
                  device,
                  at: epoch,
                  properties: { t: { value: 3, time: 1 } },
                  earlier: [sample(1, 1), sample(1, 2)]
                }],
                reactions: []
              }]
            }],
            commands: []
          })
        )
        const samples = yield* (yield* HistoryStore).samples(device.deviceId, "t", all)
        assert.deepStrictEqual(samples.map(({ value }) => value), [1, 2, 3])
      }))

    it.effect("adds facts also when the shadow stays as it is", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const { device } = yield* insertDevice
        const { deviceId } = device
        yield* commit(device, { events: [event(1, {}, "a"), event(2, {}, "b"), event(3, {}, "a")] })
        assert.deepStrictEqual((yield* store.events(deviceId, undefined, all)).map(({ time }) => time), [1, 2, 3])
        assert.deepStrictEqual((yield* store.events(deviceId, "a", all)).map(({ time }) => time), [1, 3])
      }))

    it.effect("adds the facts of each of many concurrent changes once", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const { device } = yield* insertDevice
        const { deviceId } = device
        yield* Effect.forEach(
          Array.from({ length: 20 }),
          (_, i) => commit(device, { samples: [sample(i, i)], events: [event(i, i)] }, nextVersion),
          { concurrency: "unbounded" }
        )
        const expected = Array.from({ length: 20 }, (_, i) => i)
        assert.deepStrictEqual((yield* store.samples(deviceId, "t", all)).map(({ value }) => value), expected)
        assert.deepStrictEqual((yield* store.events(deviceId, "e", all)).map(({ value }) => value), expected)
      }))

    it.effect("runs all updates again while the batch is not complete, and stores what they return in the end", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const devices = [(yield* insertDevice).device, (yield* insertDevice).device]
        let isRefused = false
        const results = yield* (yield* UplinkStore).commit({
          devices: devices.map((device) => ({
            deviceId: device.deviceId,
            update: (shadow) => {
              const samples = isRefused ? [] : [sample(1, device.deviceId)]
              return [isRefused, isRefused ? shadow : nextVersion(shadow), {
                happened: reported(device, { samples, events: [event(1, {})] }),
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
        for (const { deviceId } of devices) {
          assert.deepStrictEqual(yield* store.samples(deviceId, "t", all), [])
          assert.lengthOf(yield* store.events(deviceId, undefined, all), 1)
          assert.strictEqual(Option.getOrThrow(yield* (yield* ShadowStore).get(deviceId)).version, 0)
        }
      }))

    it.effect("returns what the update of each device has returned, in the order of the batch", () =>
      Effect.gen(function*() {
        const missing = { ...stranger, deviceId: DeviceId.make("missing") }
        const devices = [(yield* insertDevice).device, missing, (yield* insertDevice).device]
        const results = new Map(
          devices.map(({ deviceId }) => [deviceId, { replies: new Map([[deviceId, undefined]]) }])
        )
        for (const order of [devices, devices.toReversed()]) {
          const committed = yield* (yield* UplinkStore).commit({
            devices: order.map(({ deviceId }) => ({
              deviceId,
              update: (shadow) => [results.get(deviceId), nextVersion(shadow), { happened: [], reactions: [] }]
            })),
            commands: []
          })
          assert.deepStrictEqual(committed.map(Option.isSome), [true, false, true])
          for (const [i, result] of committed.entries()) {
            if (Option.isSome(result)) assert.strictEqual(result.value, results.get(order[i]!.deviceId))
          }
        }
      }))

    it.effect("forgets the history of a device with it", () =>
      Effect.gen(function*() {
        const store = yield* HistoryStore
        const { device } = yield* insertDevice
        const { deviceId, projectId } = device
        yield* commit(device, { samples: [sample(1, 1)], events: [event(1, 1)] }, nextVersion)
        yield* (yield* DeviceStore).remove(projectId, deviceId)
        assert.deepStrictEqual(yield* store.samples(deviceId, "t", all), [])
        assert.deepStrictEqual(yield* store.events(deviceId, undefined, all), [])
        assert.deepStrictEqual(yield* store.devicesWithin([deviceId], all), [])
      }))
  })

const all: HistoryRange = { start: 0, end: 8.64e15, limit: 1000, order: "asc" }

const sample = (time: number, value: Json, propertyId = "t"): PropertySample => ({ propertyId, time, value })

const event = (time: number, value: Json, eventId = "e"): EventRecord => ({ eventId, time, value })

/** The names of a device that a test knows by its id alone. */
const stranger = {
  projectId: ProjectId.make("project"),
  productKey: ProductKey.make("product"),
  deviceName: DeviceName.make("device")
}

const commit = (
  device: Parameters<typeof reported>[0],
  entries: Parameters<typeof reported>[1],
  change: (shadow: Shadow) => Shadow = (shadow) => shadow
) =>
  UplinkStore.use((store) =>
    store.commit({
      devices: [{
        deviceId: device.deviceId,
        update: (shadow) => [undefined, change(shadow), { happened: reported(device, entries), reactions: [] }]
      }],
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
      assert.deepStrictEqual(yield* values("e", { limit: 1 }), ["b"])
      assert.deepStrictEqual(yield* values("f", { start: 2 }), [])
      assert.deepStrictEqual(yield* values(undefined, { end: 1 }), ["a"])
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

  it.effect("returns the same entries after it is maintained, and takes more", () =>
    Effect.gen(function*() {
      const store = yield* HistoryStore
      const deviceId = yield* newDeviceId
      const [early, late] = [[sample(1, 1), sample(2, 2), sample(2, 3)], [sample(3, 4)]]
      yield* add(deviceId, { samples: early, events: [event(1, 1)] })
      yield* store.maintain
      assert.deepStrictEqual(yield* store.samples(deviceId, "t", all), early)
      assert.deepStrictEqual(yield* store.events(deviceId, undefined, all), [event(1, 1)])
      yield* add(deviceId, { samples: late, events: [event(2, 2)] })
      yield* store.maintain
      assert.deepStrictEqual(yield* store.samples(deviceId, "t", all), [...early, ...late])
      assert.deepStrictEqual(yield* store.events(deviceId, undefined, all), [event(1, 1), event(2, 2)])
      assert.deepStrictEqual(yield* store.devicesWithin([deviceId], all), [deviceId])
    }))

  it.effect("sums up numbers by intervals that begin at the start", () =>
    Effect.gen(function*() {
      const store = yield* HistoryStore
      const deviceId = yield* newDeviceId
      yield* add(deviceId, {
        samples: [sample(29, 4), sample(20, 1), sample(9, 100), sample(20, 3), sample(25, "x"), sample(26, null)]
      })
      yield* add(deviceId, { samples: [sample(40, -1), sample(10, 7), sample(51, 100), sample(20, 2), sample(50, 5)] })
      yield* add(deviceId, { samples: [sample(20, 100, "other")] })
      assert.deepStrictEqual(yield* store.aggregate(deviceId, "t", { start: 10, end: 50, interval: 20 }), [
        { time: 10, count: 5, min: 1, max: 7, sum: 17, first: 7, last: 4 },
        { time: 30, count: 1, min: -1, max: -1, sum: -1, first: -1, last: -1 },
        { time: 50, count: 1, min: 5, max: 5, sum: 5, first: 5, last: 5 }
      ])
      // What came first and last at the same time.
      assert.deepStrictEqual(yield* store.aggregate(deviceId, "t", { start: 20, end: 20, interval: 1 }), [
        { time: 20, count: 3, min: 1, max: 3, sum: 6, first: 1, last: 2 }
      ])
      assert.deepStrictEqual(yield* store.aggregate(deviceId, "missing", { start: 0, end: 99, interval: 1 }), [])
    }))

  it.effect("scans what some or all properties have in a range", () =>
    Effect.gen(function*() {
      const store = yield* HistoryStore
      const deviceId = yield* newDeviceId
      const days = Array.from({ length: 900 }, (_, i) => sample(epoch + i * 3_600_000, i))
      yield* add(deviceId, { samples: days.toReversed() })
      yield* add(deviceId, { samples: days.map(({ time, value }) => sample(time, { value }, "u")) })
      yield* add(deviceId, { samples: [sample(epoch, "again"), sample(epoch, 0, "v")], events: [event(epoch, 1, "t")] })
      const scan = (propertyIds: ReadonlyArray<string> | undefined, { end = all.end, start = 0 } = {}) =>
        Effect.map(Stream.runCollect(store.scan(deviceId, { start, end, propertyIds })), (chunks) => {
          const samples = chunks.flat()
          return (propertyId: string) => samples.filter((found) => found.propertyId === propertyId)
        })
      const everything = yield* scan(undefined)
      assert.deepStrictEqual(everything("t"), [days[0]!, sample(epoch, "again"), ...days.slice(1)])
      assert.deepStrictEqual(everything("u"), days.map(({ time, value }) => sample(time, { value }, "u")))
      assert.deepStrictEqual(everything("v"), [sample(epoch, 0, "v")])
      const some = yield* scan(["missing", "u"], { start: days[10]!.time, end: days[700]!.time })
      assert.deepStrictEqual([some("t"), some("v"), some("missing")], [[], [], []])
      assert.deepStrictEqual(some("u"), everything("u").slice(10, 701))
      assert.deepStrictEqual((yield* scan([]))("t"), [])
    }))

  it.effect("tells which devices have values in a range", () =>
    Effect.gen(function*() {
      const store = yield* HistoryStore
      const [silent, eventful, early, late] = [
        yield* newDeviceId,
        yield* newDeviceId,
        yield* newDeviceId,
        yield* newDeviceId
      ]
      yield* add(eventful, { events: [event(epoch, 1, "t")] })
      yield* add(early, { samples: [sample(epoch, "NUL \0, half \ud800"), sample(epoch + 10, { a: [1] }, "u")] })
      yield* add(late, { samples: [sample(epoch + 20, 1), sample(epoch + 900 * 86_400_000, 1)] })
      const asked = [late, silent, DeviceId.make("missing"), eventful, early]
      const within = (start: number, end: number) =>
        Effect.map(store.devicesWithin(asked, { start, end }), (found) => found.toSorted())
      assert.deepStrictEqual(yield* within(0, all.end), [early, late].toSorted())
      assert.deepStrictEqual(yield* within(epoch + 10, epoch + 20), [early, late].toSorted())
      assert.deepStrictEqual(yield* within(epoch, epoch), [early])
      assert.deepStrictEqual(yield* within(epoch + 20, epoch + 20), [late])
      assert.deepStrictEqual(yield* within(epoch + 11, epoch + 19), [])
      assert.deepStrictEqual(yield* within(epoch - 900 * 86_400_000, epoch - 1), [])
      assert.deepStrictEqual(yield* within(epoch + 900 * 86_400_000 + 1, all.end), [])
      assert.deepStrictEqual(yield* store.devicesWithin([silent, early], { start: 0, end: all.end }), [early])
      assert.deepStrictEqual(yield* store.devicesWithin([], { start: 0, end: all.end }), [])
    }))
}
