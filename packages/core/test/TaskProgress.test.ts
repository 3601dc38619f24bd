import { assert, it } from "@effect/vitest"
import { Schema } from "effect"
import { maxProgressPoints, progressResolution, type RecordCounts, type UpgradeTask } from "../src/index.ts"
import { progressIntervals } from "../src/ota/task/TaskProgress.ts"

const taskOf = (fields: Partial<UpgradeTask>) => fields as UpgradeTask

const counts = (fields: Partial<RecordCounts>) => ({
  pending: 0,
  upgrading: 0,
  succeeded: 0,
  failed: 0,
  cancelled: 0,
  ...fields
})

const start = Date.UTC(2026, 0, 1, 12, 0, 7)
const minutes = (count: number) => start + count * 60_000

it("the intervals fit how long a task has been going on, to now or to its end", () => {
  const under = {
    status: "in-progress",
    createdAt: start,
    updatedAt: minutes(5),
    counts: counts({ pending: 1 })
  } as const
  const young = progressIntervals(taskOf(under), minutes(10))
  assert.deepStrictEqual(
    [young.from, young.to, young.interval, young.times[0], young.times.length],
    [start, minutes(10), 10_000, start - 7000, 61]
  )
  const ended = { ...under, status: "completed", counts: counts({ succeeded: 1 }) } as const
  assert.strictEqual(progressIntervals(taskOf(ended), minutes(600)).to, minutes(5))
  const finishing = { ...under, status: "cancelled", counts: counts({ upgrading: 1 }) } as const
  assert.deepStrictEqual(
    [progressIntervals(taskOf(finishing), minutes(600))].map(({ interval, to }) => [to, interval]),
    [[minutes(600), 5 * 60_000]]
  )
  // A node whose clock is behind.
  assert.deepStrictEqual(progressIntervals(taskOf(under), start - 60_000).times.length, 1)
})

const Duration = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1e12 }))

it.prop("the intervals cover the time of a task, and are never too many", [Duration, Duration], ([from, duration]) => {
  const task = taskOf({ status: "pending", createdAt: from, counts: counts({ pending: 1 }) })
  const { interval, times, to } = progressIntervals(task, from + duration)
  assert.isAtMost(times.length, maxProgressPoints)
  assert.strictEqual(interval % progressResolution, 0)
  assert.isTrue(times[0]! <= from && from < times[0]! + interval)
  assert.isTrue(times.at(-1)! <= to && to < times.at(-1)! + interval)
  times.forEach((time, i) => assert.strictEqual(time, times[0]! + i * interval))
})
