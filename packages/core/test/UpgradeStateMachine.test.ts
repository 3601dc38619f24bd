import { type RecordCounts, type RecordStatus, taskStatus, type UpgradeRecord } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import {
  advance,
  isAborted,
  isFinal,
  isOngoing,
  isReleased,
  type UpgradeEvent
} from "../src/ota/task/UpgradeStateMachine.ts"

const At = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100_000 }))

const Event = Schema.Union([
  Schema.TaggedStruct("HandedOut", { at: At }),
  Schema.TaggedStruct("Progressed", {
    at: At,
    step: Schema.Int.check(Schema.isBetween({ minimum: -1, maximum: 100 })),
    description: Schema.String
  }),
  Schema.TaggedStruct("VersionReported", { at: At, version: Schema.Literals(["1.0.0", "2.0.0"]) }),
  Schema.TaggedStruct("Due", { at: At }),
  Schema.TaggedStruct("Confirmed", { at: At }),
  Schema.TaggedStruct("Cancelled", { at: At, whole: Schema.Boolean })
])

/** Arrays would mostly be short. */
const Events = Schema.Tuple(Array.from({ length: 12 }, () => Event))

const Conduct = Schema.Struct({
  status: Schema.Literals(["pending", "in-progress", "cancelled"]),
  version: Schema.Literal("2.0.0"),
  timeout: Schema.Literals([0, 10]),
  needAppConfirm: Schema.Boolean,
  isAppConfirmed: Schema.Boolean,
  upgradePolicy: Schema.Literals(["pull", "push"]),
  retryCount: Schema.Literals([0, 2]),
  retryInterval: Schema.Literals([0, 60])
})

const start: UpgradeRecord = {
  taskId: 1,
  deviceId: "device" as UpgradeRecord["deviceId"],
  deviceName: "device" as UpgradeRecord["deviceName"],
  status: "pending",
  step: 0,
  isConfirmed: false,
  isHeld: false,
  failures: 0,
  reason: "",
  dueAt: null,
  updatedAt: 0,
  revision: 0
}

/** Where each status may lead; a failed attempt may lead back. */
const allowed: Readonly<Record<RecordStatus, ReadonlyArray<RecordStatus>>> = {
  pending: ["pending", "upgrading", "succeeded", "failed", "cancelled"],
  upgrading: ["pending", "upgrading", "succeeded", "failed", "cancelled"],
  succeeded: [],
  failed: [],
  cancelled: []
}

it.effect.prop("no events in any order lead out of the allowed transitions", {
  events: Events,
  task: Conduct
}, ({ events, task }) =>
  Effect.sync(() => {
    let record = start
    for (const event of events as ReadonlyArray<UpgradeEvent>) {
      const after = advance(record, task, event)
      if (after === record) continue
      assert.include(allowed[record.status], after.status)
      assert.strictEqual(after.revision, record.revision + 1)
      assert.strictEqual(after.updatedAt, event.at)
      if (event._tag === "HandedOut" || event._tag === "Progressed") {
        assert.isTrue(record.status === "upgrading" || isReleased(task, record))
      }
      // Only what had begun and has failed goes back, while its task goes on.
      if (record.status === "upgrading" && after.status === "pending") {
        assert.isTrue(isOngoing(task) && after.failures === record.failures + 1 && after.dueAt !== null)
      }
      // Success is what the device reports to run, and nothing else.
      assert.strictEqual(
        after.status === "succeeded",
        event._tag === "VersionReported" && event.version === task.version
      )
      if (after.status === "failed") assert.strictEqual(after.failures, isOngoing(task) ? task.retryCount + 1 : 1)
      if (isFinal(after.status)) assert.isNull(after.dueAt)
      assert.isTrue(after.step >= -1 && after.step <= 100)
      record = after
    }
  }))

it.effect.prop(
  "a record enters one of its ends at most, and stays there",
  { events: Events, task: Conduct },
  ({ events, task }) =>
    Effect.sync(() => {
      const ends = new Set<UpgradeRecord>()
      let record = start
      for (const event of events as ReadonlyArray<UpgradeEvent>) {
        record = advance(record, task, event)
        if (isFinal(record.status)) ends.add(record)
      }
      assert.isAtMost(ends.size, 1)
    })
)

it.effect.prop(
  "a record that has begun ends by time alone, whatever has happened before",
  { events: Events, task: Conduct },
  ({ events, task: conduct }) =>
    Effect.sync(() => {
      const task = { ...conduct, timeout: 10, isAppConfirmed: true, upgradePolicy: "push" } as const
      let record = advance(
        (events as ReadonlyArray<UpgradeEvent>).reduce((record, event) => advance(record, task, event), start),
        task,
        { _tag: "HandedOut", at: 100_000 }
      )
      for (let turns = 0; !isFinal(record.status); turns++) {
        assert.isBelow(turns, 2 * (task.retryCount + 1))
        const at = record.dueAt!
        // As the cloud does it: what waits is told, what has begun has timed out.
        record = advance(record, task, { _tag: record.status === "pending" ? "HandedOut" : "Due", at })
      }
      assert.isNull(record.dueAt)
    })
)

it.effect.prop(
  "a record that has begun ends in time, once",
  { events: Events, task: Conduct },
  ({ events, task }) =>
    Effect.sync(() => {
      let record = start
      for (const event of events as ReadonlyArray<UpgradeEvent>) record = advance(record, task, event)
      const ends = record
      for (let at = 200_000; !isFinal(record.status) && at < 10_000_000; at += 60_000) {
        record = advance(record, { ...task, timeout: 10, isAppConfirmed: true }, { _tag: "HandedOut", at })
        record = advance(record, task, { _tag: "Progressed", at, step: -1, description: "flash" })
      }
      assert.isTrue(isFinal(record.status))
      if (isFinal(ends.status)) assert.strictEqual(record, ends)
    })
)

it("a device is told when it is confirmed; a second confirmation does not cut the wait for its next attempt short", () => {
  const task = {
    status: "pending",
    version: "2.0.0",
    timeout: 0,
    needAppConfirm: true,
    isAppConfirmed: false,
    upgradePolicy: "push",
    retryCount: 1,
    retryInterval: 600
  } as const
  const confirmed = advance(start, task, { _tag: "Confirmed", at: 5 })
  assert.deepInclude(confirmed, { isConfirmed: true, dueAt: 5 })
  const waiting = advance(confirmed, task, { _tag: "Progressed", at: 10, step: -1, description: "flash" })
  assert.deepInclude(waiting, { status: "pending", dueAt: 600_010 })
  assert.strictEqual(advance(waiting, task, { _tag: "Confirmed", at: 20 }), waiting)
  // Whoever asks is not told.
  assert.isNull(advance(start, { ...task, upgradePolicy: "pull" }, { _tag: "Confirmed", at: 5 }).dueAt)
  // The task has told it already.
  const released = { ...task, isAppConfirmed: true }
  const again = advance(start, released, { _tag: "Progressed", at: 10, step: -1, description: "flash" })
  assert.deepInclude(advance(again, released, { _tag: "Confirmed", at: 20 }), { isConfirmed: true, dueAt: 600_010 })
})

const count = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 5 }))
const Counts = Schema.Struct({ pending: count, upgrading: count, succeeded: count, failed: count, cancelled: count })

it.effect.prop("the status of a task is what its records imply", { counts: Counts }, ({ counts }) =>
  Effect.sync(() => {
    const open = counts.pending + counts.upgrading
    const ended = counts.succeeded + counts.failed + counts.cancelled
    const expected = open > 0
      ? counts.upgrading + ended === 0 ? "pending" : "in-progress"
      : counts.succeeded > 0
      ? "completed"
      : "failed"
    for (const status of ["pending", "in-progress", "completed", "failed"] as const) {
      assert.strictEqual(taskStatus({ status, isDynamic: false }, counts), expected)
      // A dynamic task goes on.
      const begun = counts.upgrading + ended > 0
      assert.strictEqual(taskStatus({ status, isDynamic: true }, counts), begun ? "in-progress" : "pending")
    }
    for (const isDynamic of [false, true]) {
      assert.strictEqual(taskStatus({ status: "cancelled", isDynamic }, counts), "cancelled")
    }
  }))

it("a task is given up when too many have failed", () => {
  const counts: RecordCounts = { pending: 5, upgrading: 0, succeeded: 6, failed: 4, cancelled: 0 }
  const task = { abortMinExecuted: 10, abortThresholdPercent: 40, counts, status: "in-progress" } as const
  assert.isTrue(isAborted(task))
  assert.isFalse(isAborted({ ...task, abortThresholdPercent: 41 }))
  assert.isFalse(isAborted({ ...task, abortMinExecuted: 11 }))
  assert.isFalse(isAborted({ ...task, abortThresholdPercent: 0 }))
  assert.isFalse(isAborted({ ...task, status: "completed" }))
})
