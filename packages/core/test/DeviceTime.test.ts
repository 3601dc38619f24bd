import { defaultProjectId, type Device, History, Shadows, ThingModels } from "@device-cloud/core"
import { TestCloud } from "@device-cloud/testing"
import { assert, layer } from "@effect/vitest"
import { Effect, Metric } from "effect"
import { TestClock } from "effect/testing"

const remark = "time: more than five minutes ahead of the cloud; the cloud's time counts"

const connectPlain = Effect.gen(function*() {
  const cloud = yield* TestCloud
  return yield* cloud.connect(yield* cloud.createDevice())
})

const reportedBy = ({ deviceId }: Device) =>
  Effect.flatMap(
    Shadows,
    (shadows) => Effect.map(shadows.get(defaultProjectId, deviceId), ({ shadow }) => shadow.reported)
  )

const range = { start: 0, end: 8.64e15, limit: 1000, order: "asc" } as const

const year2099 = Date.UTC(2099, 0, 1)
const minutes = 60_000

const timesAhead = Effect.map(
  Metric.snapshot,
  (metrics) =>
    metrics.find(({ id }) => id === "device_cloud_uplink_times_ahead_total")?.state as { readonly count: number }
)

layer(TestCloud.layer)("times that devices give", (it) => {
  it.effect("a time far ahead counts as now, in the shadow, the history and events, and the reply says so", () =>
    Effect.gen(function*() {
      const connected = yield* connectPlain
      const { device } = connected
      yield* TestClock.setTime(10 * minutes)
      const before = (yield* timesAhead)?.count ?? 0
      const reply = yield* connected.postProperties({ t: { value: 1, time: year2099 }, u: 2 })
      assert.deepInclude(reply, { code: 200, data: { t: remark } })
      const event = yield* connected.send("thing.event.hot.post", { value: { degrees: 90 }, time: year2099 })
      assert.deepInclude(event, { code: 200, data: { hot: remark } })
      const batch = yield* connected.send("thing.event.property.batch.post", {
        properties: { t: [{ value: 2, time: 15 * minutes }, { value: 3, time: 15 * minutes + 1 }] },
        events: { hot: { value: {}, time: year2099 } }
      })
      assert.deepInclude(batch, { code: 200, data: { t: remark, hot: remark } })
      const history = yield* History
      const samples = yield* history.properties(defaultProjectId, device.deviceId, "t", range)
      assert.deepStrictEqual(
        samples.map(({ time, value }) => [value, time / minutes]).toSorted(),
        [[1, 10], [2, 15], [3, 10]]
      )
      const events = yield* history.events(defaultProjectId, device.deviceId, "hot", range)
      assert.deepStrictEqual(events.map(({ time }) => time), [10 * minutes, 10 * minutes])
      assert.strictEqual((yield* timesAhead).count - before, 4)
      yield* TestClock.setTime(16 * minutes)
      assert.deepInclude(yield* connected.postProperties({ t: 4 }), { data: {} })
      assert.deepStrictEqual((yield* reportedBy(device))["t"], { value: 4, time: 16 * minutes })
    }))

  it.effect("the clock of the cloud may go back, a little or far, and freezes nothing", () =>
    Effect.gen(function*() {
      const connected = yield* connectPlain
      for (const [value, at] of [30, 29, 10, 27].entries()) {
        yield* TestClock.setTime(at * minutes)
        yield* connected.postProperties({ t: value })
        assert.deepStrictEqual((yield* reportedBy(connected.device))["t"], { value, time: at * minutes })
      }
    }))

  it.effect("a shadow has room for every property of the model, and for 128 others", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const product = yield* cloud.createProduct({ validateType: "none" })
      const properties = Array.from({ length: 300 }, (_, i) => ({
        id: `known${i}`,
        name: `Known ${i}`,
        accessMode: "rw",
        dataType: { type: "int" }
      }))
      yield* (yield* ThingModels).importFrom(
        defaultProjectId,
        product.productKey,
        "metadata",
        JSON.stringify({ properties, events: [], services: [] })
      )
      const connected = yield* cloud.connect(yield* cloud.createDevice(product))
      const post = (name: string, from: number, to: number) =>
        connected.postProperties(
          Object.fromEntries(Array.from({ length: to - from }, (_, i) => [`${name}${from + i}`, i]))
        )
      for (const [from, to] of [[0, 150], [150, 300]] as const) {
        assert.deepInclude(yield* post("known", from, to), { code: 200, data: {} })
      }
      const { data } = yield* post("other", 0, 130)
      assert.deepStrictEqual(data, {
        other128: "more than 128 attributes that the thing model does not have",
        other129: "more than 128 attributes that the thing model does not have"
      })
      assert.lengthOf(Object.keys(yield* reportedBy(connected.device)), 428)
      const shadows = yield* Shadows
      const desired = Object.fromEntries(properties.map(({ id }) => [id, 1]))
      const { desired: after } = yield* shadows.desire(defaultProjectId, connected.device.deviceId, desired)
      assert.lengthOf(Object.keys(after), 300)
    }))
})
