/**
 * How a device moves through an upgrade, and a task with its devices. Pure.
 * See docs/protocol/upgrades.md.
 */
import type {
  OtaTask,
  RecordCounts,
  RecordStatus,
  UpgradeRecord,
  UpgradeTask,
  UpgradeTaskStatus
} from "./UpgradeTask.ts"

/** Something that happens to a device in a task; `at`: Unix milliseconds. */
export type UpgradeEvent =
  /** The cloud has given the device the address of the firmware. */
  | { readonly _tag: "HandedOut"; readonly at: number }
  /** The device has reported a step, in percent; below 0: it has failed. */
  | { readonly _tag: "Progressed"; readonly at: number; readonly step: number; readonly description: string }
  /** The device has reported the version that it runs. */
  | { readonly _tag: "VersionReported"; readonly at: number; readonly version: string }
  /** The time of `dueAt` has come. */
  | { readonly _tag: "Due"; readonly at: number }
  /** It is not the time of the device, which is told at `until`, Unix milliseconds. */
  | { readonly _tag: "Postponed"; readonly at: number; readonly until: number }
  /** A user has confirmed the upgrade of this device. */
  | { readonly _tag: "Confirmed"; readonly at: number }
  /** `whole`: with its task, which lets devices finish that have begun. */
  | { readonly _tag: "Cancelled"; readonly at: number; readonly whole: boolean }

type Conduct = Pick<
  OtaTask,
  | "status"
  | "version"
  | "timeout"
  | "upgradePolicy"
  | "needAppConfirm"
  | "isAppConfirmed"
  | "retryCount"
  | "retryInterval"
>

/** Whether a device in this status has nothing left to do. */
export const isFinal = (status: RecordStatus): boolean => status !== "pending" && status !== "upgrading"

/** Whether the task has not ended. */
export const isOngoing = ({ status }: Pick<OtaTask, "status">): boolean =>
  status === "pending" || status === "in-progress" || status === "verifying"

/** Whether the device may have the firmware. */
export const isReleased = (
  { isAppConfirmed, needAppConfirm }: Pick<OtaTask, "isAppConfirmed" | "needAppConfirm">,
  { isConfirmed, isHeld }: Pick<UpgradeRecord, "isConfirmed" | "isHeld">
): boolean => !isHeld && (!needAppConfirm || isAppConfirmed || isConfirmed)

/** Why a user cannot confirm the task, or a device in it; undefined: they can. */
export const confirmationRefused = (task: Pick<OtaTask, "needAppConfirm" | "status">): string | undefined => {
  if (!task.needAppConfirm) return "it needs no confirmation"
  return isOngoing(task) ? undefined : "it has ended"
}

/** Whether the cloud tells the device of its upgrade. */
export const isPushed = (
  task: Pick<OtaTask, "isAppConfirmed" | "needAppConfirm" | "upgradePolicy">,
  record: Pick<UpgradeRecord, "isConfirmed" | "isHeld">
): boolean => task.upgradePolicy === "push" && isReleased(task, record)

const change = (record: UpgradeRecord, at: number, fields: Partial<UpgradeRecord>): UpgradeRecord => ({
  ...record,
  ...fields,
  updatedAt: at,
  revision: record.revision + 1
})

const end = (
  record: UpgradeRecord,
  at: number,
  status: "succeeded" | "failed" | "cancelled",
  fields: Partial<UpgradeRecord>
) => change(record, at, { ...fields, status, dueAt: null })

const begin = (record: UpgradeRecord, { timeout }: Conduct, at: number, fields: Partial<UpgradeRecord>) =>
  change(record, at, {
    ...fields,
    status: "upgrading",
    // The time of a device runs from its beginning, whatever it reports later.
    dueAt: record.status === "upgrading" ? record.dueAt : timeout === 0 ? null : at + timeout * 1000
  })

/** Milliseconds; a node that works notices sooner that the time of a device is up. */
const awayMillis = 10_000
/** Milliseconds that a device has to report after the cloud was away when its time was up. */
const graceMillis = 60_000

/** While its task goes on and retries are left, the device waits for the next attempt. Otherwise it has failed. */
const fail = (record: UpgradeRecord, task: Conduct, at: number, reason: string): UpgradeRecord => {
  const failures = record.failures + 1
  return failures <= task.retryCount && isOngoing(task)
    ? change(record, at, { status: "pending", step: 0, failures, reason, dueAt: at + task.retryInterval * 1000 })
    : end(record, at, "failed", { step: -1, failures, reason })
}

/** The record after the event. Returns `record` itself if the event changes nothing. */
export const advance = (record: UpgradeRecord, task: Conduct, event: UpgradeEvent): UpgradeRecord => {
  const { at } = event
  if (isFinal(record.status)) return record
  switch (event._tag) {
    case "HandedOut":
      return record.status === "pending" && isReleased(task, record) ? begin(record, task, at, { step: 0 }) : record
    case "Progressed":
      // Nobody has given the device this firmware: it reports another upgrade.
      if (record.status === "pending" && !isReleased(task, record)) return record
      if (event.step < 0) return fail(record, task, at, event.description)
      return begin(record, task, at, { step: event.step, reason: event.description })
    case "VersionReported":
      return event.version === task.version ? end(record, at, "succeeded", { step: 100, reason: "" }) : record
    case "Due":
      if (record.dueAt === null || record.dueAt > at) return record
      if (record.status === "pending") return change(record, at, { dueAt: null })
      // The cloud was away when the time was up: the device could not report.
      return at - record.dueAt > awayMillis
        ? change(record, at, { dueAt: at + graceMillis })
        : fail(record, task, at, timedOut)
    case "Postponed":
      return record.status === "pending" ? change(record, at, { dueAt: event.until }) : record
    case "Confirmed": {
      if (record.isConfirmed) return record
      const confirmed = change(record, at, { isConfirmed: true })
      return isPushed(task, confirmed) && !isPushed(task, record) ? { ...confirmed, dueAt: at } : confirmed
    }
    case "Cancelled":
      return event.whole && record.status === "upgrading"
        ? record
        : end(record, at, "cancelled", { reason: "cancelled" })
  }
}

/** The reason of a device that took longer than its task allows. */
export const timedOut = "timed out"

/** The number of devices of a task. */
export const deviceCount = ({ cancelled, failed, pending, succeeded, upgrading }: RecordCounts): number =>
  pending + upgrading + succeeded + failed + cancelled

/**
 * The status of an upgrade task that its records imply. A cancelled task stays
 * cancelled, and a dynamic one goes on.
 */
export const taskStatus = (
  { isDynamic, status }: Pick<UpgradeTask, "isDynamic" | "status">,
  counts: RecordCounts
): UpgradeTaskStatus => {
  if (status === "cancelled") return "cancelled"
  if (counts.pending + counts.upgrading > 0 || isDynamic) {
    return counts.pending === deviceCount(counts) ? "pending" : "in-progress"
  }
  return counts.succeeded > 0 ? "completed" : "failed"
}

/** The task with these counts and the status that follows from them. A verify task keeps its status. */
export const withCounts = (task: OtaTask, counts: RecordCounts): OtaTask =>
  task.kind === "verify" ? { ...task, counts } : { ...task, counts, status: taskStatus(task, counts) }

/** Whether so many devices have failed that the task is cancelled. */
export const isAborted = (
  { abortMinExecuted, abortThresholdPercent, counts, status }: Pick<
    OtaTask,
    "abortMinExecuted" | "abortThresholdPercent" | "counts" | "status"
  >
): boolean => {
  const executed = counts.succeeded + counts.failed
  return abortThresholdPercent > 0 && isOngoing({ status }) && executed >= abortMinExecuted &&
    counts.failed * 100 >= executed * abortThresholdPercent
}
