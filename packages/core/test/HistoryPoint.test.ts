import { type HistoryDraft, historyRead } from "@device-cloud/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { HistoryBucket } from "../src/history/Aggregate.ts"
import { pointsOf } from "../src/history/HistoryPoint.ts"

const now = Date.UTC(2026, 0, 2, 12, 34, 56)
const midnight = Date.UTC(2026, 0, 2)
const minute = 60_000

const issuesOf = (draft: HistoryDraft) =>
  Effect.map(Effect.flip(historyRead(draft, now)), ({ issues }) => issues.map(({ path }) => path.join(".")))

const bucket = (time: number, ...values: ReadonlyArray<number>): HistoryBucket => ({
  time,
  count: values.length,
  min: Math.min(...values),
  max: Math.max(...values),
  sum: values.reduce((sum, value) => sum + value, 0),
  first: values[0]!,
  last: values.at(-1)!
})

describe("a read of history", () => {
  it.effect("asks for values unless it has a function", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* historyRead({ end: 5 }, now), {
        _tag: "Values",
        range: { start: 0, end: 5, limit: 100, order: "desc" }
      })
      assert.deepStrictEqual(yield* issuesOf({ interval: 60, fill: "null" }), ["interval", "fill"])
    }))

  it.effect("asks for points of whole intervals, which begin where the clock of UTC does", () =>
    Effect.gen(function*() {
      const plot = (draft: HistoryDraft) =>
        Effect.map(
          historyRead({ aggregate: ["avg"], ...draft }, now),
          (read) => read._tag === "Points" ? read.plot : undefined
        )
      const day = 86_400_000
      assert.deepStrictEqual(yield* plot({ start: midnight + 1, interval: 86_400 }), {
        start: midnight,
        end: midnight + day - 1,
        interval: day,
        fill: "none",
        order: "desc"
      })
      assert.deepInclude(yield* plot({ start: midnight + 61_000, end: midnight + 120_000, interval: 60 }), {
        start: midnight + minute,
        end: midnight + 3 * minute - 1
      })
      const last = yield* plot({ start: 8.64e15 - 5, end: 8.64e15, interval: 2_592_000 })
      assert.strictEqual(last?.end, 8.64e15)
    }))

  it.effect("names what is missing, what does not fit, and too many points", () =>
    Effect.gen(function*() {
      const aggregate = ["max"] as const
      assert.deepStrictEqual(yield* issuesOf({ aggregate, limit: 5 }), ["start", "interval", "limit"])
      const end = midnight + 10_000_000 - 1
      assert.deepStrictEqual(yield* issuesOf({ aggregate, start: midnight - 1, end, interval: 1 }), ["interval"])
      assert.strictEqual((yield* historyRead({ aggregate, start: midnight, end, interval: 1 }, now))._tag, "Points")
    }))
})

describe("points", () => {
  const plot = { start: midnight, end: midnight + 4 * minute - 1, interval: minute, order: "asc" } as const
  const buckets = [bucket(midnight + minute, 3, 1, 2), bucket(midnight + 3 * minute, 7)]
  const shown = (fill: "none" | "null" | "previous", before: number | null = null) =>
    pointsOf(buckets, { ...plot, fill }, before).map(({ avg, count, last, time }) => [
      (time - midnight) / minute,
      avg,
      last,
      count
    ])

  it("leave out intervals without values, or fill them in", () => {
    assert.deepStrictEqual(shown("none"), [[1, 2, 2, 3], [3, 7, 7, 1]])
    assert.deepStrictEqual(shown("null", 9), [[0, null, null, 0], [1, 2, 2, 3], [2, null, null, 0], [3, 7, 7, 1]])
    assert.deepStrictEqual(shown("previous", 9), [[0, 9, 9, 0], [1, 2, 2, 3], [2, 2, 2, 0], [3, 7, 7, 1]])
    assert.deepStrictEqual(shown("previous")[0], [0, null, null, 0])
  })

  it("say everything about an interval, in either order", () => {
    const points = pointsOf(buckets, { ...plot, fill: "none", order: "desc" }, null)
    assert.deepStrictEqual(points[1], {
      time: midnight + minute,
      avg: 2,
      min: 1,
      max: 3,
      first: 3,
      last: 2,
      count: 3,
      sum: 6
    })
  })

  it("have null for what is no number any more", () => {
    const [point] = pointsOf([bucket(midnight, 1.7e308, 1.7e308)], { ...plot, fill: "none" }, null)
    assert.deepInclude(point, { sum: null, avg: null, max: 1.7e308 })
  })

  it("are none when the range ends before it starts", () => {
    assert.deepStrictEqual(pointsOf([], { ...plot, end: -1, fill: "null" }, null), [])
  })
})
