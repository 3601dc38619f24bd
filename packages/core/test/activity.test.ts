import {
  type ActivityCount,
  ActivityStore,
  Commands,
  defaultProjectId,
  DeviceId,
  ProjectActivity,
  ProjectId,
  ProjectOverview,
  StoreError,
  Troubles
} from "@device-cloud/core"
import { TestCloud } from "@device-cloud/testing"
import { assert, it, layer } from "@effect/vitest"
import { Effect, Layer, Queue } from "effect"
import { TestClock } from "effect/testing"
import { Flapping } from "../src/connection/Flapping.ts"
import { activityRange, activitySeries } from "../src/activity/ActivitySeries.ts"

const minutes = 60_000
const hours = 60 * minutes

/** A time in the middle of the first hour. */
const start = 5 * minutes

layer(TestCloud.layer)("the activity of a project", (it) => {
  it.effect("counts messages, commands and devices by minute", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const commands = yield* Commands
      const { series } = yield* ProjectActivity
      const lamp = yield* cloud.connect(yield* cloud.createDevice())
      const offline = yield* cloud.createDevice()
      yield* TestClock.setTime(start)
      yield* lamp.postProperties({ power: 1 })
      yield* lamp.send("thing.event.property.post", { power: 2 })
      yield* lamp.send("thing.event.property.post", "no object")
      yield* lamp.send("thing.no.such.method", {})
      yield* TestClock.adjust("1 minute")
      for (const code of [200, 100_001]) {
        yield* commands.setProperties(defaultProjectId, lamp.device.deviceId, { power: 0 }, {})
        yield* lamp.answer(yield* Queue.take(lamp.received), code)
      }
      yield* commands.setProperties(defaultProjectId, offline.deviceId, { power: 0 }, { ttl: 1 })
      yield* TestClock.adjust("1 minute")
      const { points, ...period } = yield* series(defaultProjectId, { from: start })
      assert.deepStrictEqual(period, { from: start, to: start + 2 * minutes, interval: 60 })
      const [first, second] = points
      assert.deepStrictEqual([points.length, first!.time, second!.time], [2, start, start + minutes])
      assert.deepStrictEqual(points.map(({ devicesOnline }) => devicesOnline), [1, 1])
      assert.deepStrictEqual(first!.messages, { accepted: 2, refused: { "460": 1, "6203": 1 } })
      assert.deepStrictEqual(second!.commands, { replied: 1, failed: { "100001": 1 }, expired: 1 })
      assert.deepStrictEqual(second!.executions, { succeeded: 0, failed: 0 })
      assert.deepStrictEqual(first!.commands, { replied: 0, failed: {}, expired: 0 })
      // By hour, the same.
      const { points: [whole], interval } = yield* series(defaultProjectId, { from: -20 * 24 * hours, to: 2 * hours })
        .pipe(Effect.map(({ points, ...rest }) => ({ ...rest, points: points.slice(-1) })))
      assert.strictEqual(interval, 3600)
      assert.deepStrictEqual(whole!.messages, { accepted: 4, refused: { "460": 1, "6203": 1 } })
    }))
})

layer(TestCloud.layer)("the activity of a project by hour", (it) => {
  it.effect("counts a device once, also in a part of an hour", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const { series } = yield* ProjectActivity
      const lamp = yield* cloud.connect(yield* cloud.createDevice())
      for (const adjusted of ["1 hour", "90 seconds", "30 seconds"] as const) {
        yield* TestClock.adjust(adjusted)
        yield* lamp.postProperties({ power: 1 })
      }
      yield* TestClock.adjust("10 seconds")
      const ofHours = (to?: number) =>
        Effect.map(series(defaultProjectId, { from: -20 * 24 * hours, to }), ({ points, ...period }) => [
          period.interval,
          period.to,
          ...points.slice(-2).map(({ devicesOnline, messages: { accepted } }) => [devicesOnline, accepted])
        ])
      // What the minute that is not over has had is not in it.
      assert.deepStrictEqual(yield* ofHours(), [3600, hours + 2 * minutes, [1, 0], [1, 2]])
      // The hour in which the period ends is whole.
      assert.deepStrictEqual(yield* ofHours(30 * minutes), [3600, hours, [0, 0], [1, 0]])
    }))
})

layer(TestCloud.layer)("what goes wrong in a project", (it) => {
  it.effect("is told of a device that is refused, or that comes and goes, until an hour is over", () =>
    Effect.gen(function*() {
      const cloud = yield* TestCloud
      const { latest } = yield* Troubles
      const { get } = yield* ProjectOverview
      const [steady, flapping] = [yield* cloud.createDevice(), yield* cloud.createDevice()]
      const lamp = yield* cloud.connect(steady)
      for (let i = 0; i < 3; i++) yield* lamp.send("thing.event.property.post", "no object")
      for (let i = 0; i < 6; i++) yield* Effect.scoped(cloud.connect(flapping))
      yield* TestClock.adjust("10 seconds")
      const found = yield* latest(defaultProjectId, 10)
      assert.deepStrictEqual(found.map(({ detail, kind, subject, times }) => [kind, subject, times, detail]), [
        ["flapping", flapping.deviceId, 12, ""],
        ["refused", steady.deviceId, 3, "460"]
      ])
      const { attention } = yield* get(defaultProjectId)
      assert.deepStrictEqual(attention.map(({ kind }) => kind), ["device_flapping", "device_refused"])
      yield* TestClock.adjust("61 minutes")
      assert.deepStrictEqual(yield* latest(defaultProjectId, 10), [])
      assert.deepStrictEqual((yield* get(defaultProjectId)).attention, [])
    }))
})

it("a device flaps from its tenth change in an hour on, whichever node makes them", () => {
  const flapping = new Flapping()
  const [one, other] = [DeviceId.make("one"), DeviceId.make("other")]
  for (let version = 1; version < 10; version++) assert.strictEqual(flapping.changed(one, version, 0), 0)
  assert.strictEqual(flapping.changed(one, 10, 0), 10)
  assert.strictEqual(flapping.changed(one, 11, 0), 1)
  assert.strictEqual(flapping.changed(other, 100, 0), 0)
  // Between the two changes that this node has seen there were eight others.
  assert.strictEqual(flapping.changed(other, 109, 1), 2)
  assert.strictEqual(flapping.changed(one, 12, 3_600_000), 0)
})

/** A store that fails while `isAway` holds. */
const fragileStore = () => {
  const stored: Array<ActivityCount> = []
  const state = { stored, isAway: false, calls: 0 }
  const store = Layer.mock(ActivityStore, {
    add: (counts) =>
      Effect.suspend(() => {
        state.calls++
        if (state.isAway) {
          return Effect.fail(new StoreError({ operation: "add", retryable: true, cause: new Error("away") }))
        }
        stored.push(...counts)
        return Effect.void
      }),
    sampleOnline: () => Effect.void,
    prune: () => Effect.succeed(0)
  })
  return { state, store }
}

it.effect("what a store that is away does not take waits, and a thousand projects make one call", () =>
  Effect.gen(function*() {
    const { state, store } = fragileStore()
    const activity = yield* Effect.provide(
      ProjectActivity,
      yield* Layer.build(Layer.provide(ProjectActivity.layer, store))
    )
    const countAll = () => {
      for (let i = 0; i < 1000; i++) activity.count(ProjectId.make(`p${i}`), "accepted", 2)
    }
    state.isAway = true
    countAll()
    yield* TestClock.adjust("10 seconds")
    countAll()
    state.isAway = false
    const { calls } = state
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual(state.calls, calls + 1)
    assert.lengthOf(state.stored, 1000)
    assert.isTrue(state.stored.every(({ count, minute }) => count === 4 && minute === 0))
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual(state.calls, calls + 1)
  }))

it.effect("codes beyond the twentieth of an hour are one", () =>
  Effect.gen(function*() {
    const { state, store } = fragileStore()
    const activity = yield* Effect.provide(
      ProjectActivity,
      yield* Layer.build(Layer.provide(ProjectActivity.layer, store))
    )
    const count = (code: number) => activity.count(defaultProjectId, "failed", 1, code)
    for (let code = 0; code < 1000; code++) count(code)
    count(3)
    yield* TestClock.adjust("10 seconds")
    assert.lengthOf(state.stored, 21)
    const countOf = (code: string) => state.stored.find((one) => one.code === code)?.count
    assert.deepStrictEqual([countOf("3"), countOf("other"), countOf("20")], [2, 980, undefined])
    yield* TestClock.adjust("1 hour")
    count(500)
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual(countOf("500"), 1)
  }))

it.effect("a period has whole intervals, as short as 500 points allow", () =>
  Effect.gen(function*() {
    const now = Date.UTC(2026, 0, 31, 12, 34, 56)
    const lengths = yield* Effect.forEach([1, 8, 9, 40, 47, 49, 24 * 20, 24 * 25], (length) =>
      Effect.map(activityRange({ from: now - length * hours }, now), ({ from, interval, to }) => {
        assert.strictEqual(from % interval, 0)
        assert.isAtMost((to - from) / interval, 500)
        return interval
      }))
    assert.deepStrictEqual(lengths, [1, 1, 2, 5, 10, 60, 60, 120])
    const all = yield* activityRange({ from: 0, to: 8.64e15 }, now)
    assert.deepStrictEqual([all.interval, all.to], [120, Math.floor(now / minutes)])
    assert.strictEqual((yield* activityRange({}, now)).from, all.to - 180)
    for (const period of [{ from: now }, { from: now - hours, to: now - 2 * hours }]) {
      assert.strictEqual((yield* Effect.flip(activityRange(period, now))).issues[0].path[0], "from")
    }
    // A part of an interval at the end counts as what it is.
    const { points } = activitySeries({ from: 0, to: 90, interval: 60 }, [
      { minute: 0, measure: "online", code: "", count: 60 },
      { minute: 60, measure: "online", code: "", count: 60 }
    ])
    assert.deepStrictEqual(points.map(({ devicesOnline, time }) => [time, devicesOnline]), [[0, 1], [hours, 2]])
  }))
