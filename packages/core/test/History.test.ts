import { DeviceCloud, History, HistoryDays, HistoryRetention, HistoryStore } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"

const cloud = DeviceCloud.layer.pipe(
  Layer.provideMerge(StorageMemory.layer),
  Layer.provideMerge(PlatformNode.layer),
  Layer.provide(Layer.succeed(HistoryDays, 3))
)

const [minute, day] = [60_000, 86_400_000]
const start = Date.UTC(2026, 0, 10)

/** Values that are ten days old, and those that are two and three days old in half an hour. */
const ages = { ten: 10 * day, three: 3 * day - 30 * minute, two: 2 * day - 30 * minute, none: 0 }

const forgets = Effect.gen(function*() {
  const store = yield* HistoryStore
  const [product, brief] = [yield* Fixtures.createProduct(), yield* Fixtures.createProduct()]
  yield* (yield* HistoryRetention).set(brief.projectId, brief.productKey, 2)
  const devices = yield* Effect.forEach([product, brief], (product) => Fixtures.createDevice(product))
  const samples = Object.entries(ages).map(([value, age]) => ({ propertyId: "a", time: start - age, value }))
  yield* store.append(devices.map(({ deviceId }) => ({ deviceId, samples, events: [] })))
  const values = Effect.forEach(devices, ({ deviceId }) =>
    Effect.map(
      store.samples(deviceId, "a", { start: 0, end: 8.64e15, limit: 10, order: "asc" }),
      (found) => found.map(({ value }) => value)
    ))
  yield* TestClock.adjust("15 minutes")
  assert.deepStrictEqual(yield* values, [["three", "two", "none"], ["two", "none"]])
  yield* TestClock.adjust("30 minutes")
  assert.deepStrictEqual(yield* values, [["two", "none"], ["none"]])
})

it.effect("the days of a product have bounds", () =>
  Effect.gen(function*() {
    const { productKey, projectId } = yield* Fixtures.createProduct()
    const retention = yield* HistoryRetention
    for (const days of [0, -1, 1.5, 3651, Number.NaN]) {
      const error = yield* Effect.flip(retention.set(projectId, productKey, days))
      assert.strictEqual(error._tag, "InvalidInput")
      assert.match(error.message, /^days: /)
    }
    assert.strictEqual((yield* retention.get(projectId, productKey)).days, null)
  }).pipe(Effect.provide(cloud)))

it.effect("history is forgotten by when it was measured, after the days of the product or else of all", () =>
  TestClock.setTime(start).pipe(Effect.andThen(Effect.provide(forgets, cloud))))

it.effect("an export of a product reads the devices that have values, in the order in which they were created", () => {
  const read: Array<string> = []
  const stores = Layer.effectContext(Effect.map(HistoryStore, (history) =>
    Context.make(HistoryStore, {
      ...history,
      scan: (deviceId, scan) => {
        read.push(deviceId)
        return history.scan(deviceId, scan)
      }
    }))).pipe(Layer.provideMerge(StorageMemory.layer))
  return Effect.gen(function*() {
    const product = yield* Fixtures.createProduct()
    // More than a page of them.
    const devices = yield* Effect.forEach(Array.from({ length: 1200 }), () => Fixtures.createDevice(product))
    const deviceIds = devices.map(({ deviceId }) => deviceId)
    const sample = (time: number) => ({ propertyId: "a", time, value: time })
    const reports = [[1100, 5], [3, 5], [1000, 9], [999, 4], [500, 10], [7, 5]] as const
    for (const [device, time] of reports) {
      yield* HistoryStore.use((store) =>
        store.append([{ deviceId: deviceIds[device]!, samples: [sample(time)], events: [] }])
      )
    }
    const exported = yield* (yield* History).exportProduct(product.projectId, product.productKey, {
      start: 5,
      end: 9,
      propertyIds: undefined
    }).pipe(Effect.flatMap(Stream.runCollect))
    assert.deepStrictEqual(
      exported.map(({ device: { deviceId }, samples }) => [deviceId, samples]),
      [[3, 5], [7, 5], [1000, 9], [1100, 5]].map(([device, time]) => [deviceIds[device!]!, [sample(time!)]])
    )
    assert.deepStrictEqual(read, exported.map(({ device }) => device.deviceId))
  }).pipe(Effect.provide(DeviceCloud.layer.pipe(Layer.provideMerge(stores), Layer.provideMerge(PlatformNode.layer))))
})
