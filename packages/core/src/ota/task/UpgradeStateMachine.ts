/**
 * How a device moves through an upgrade, and a task with its devices
 * (decisions, section 10). Pure.
 */
import type { RecordCounts, RecordStatus, TaskStatus, UpgradeRecord, UpgradeTask } from "./UpgradeTask.ts"

/** Something that happens to a device in a task; `at`: Unix milliseconds. */
export type UpgradeEvent =
  /** The device has been given the address of the firmware. */
  | { readonly _tag: "HandedOut"; readonly at: number }
  /** Negative: it failed. */
  | { readonly _tag: "Progressed"; readonly at: number; readonly step: number; readonly description: string }
  | { readonly _tag: "VersionReported"; readonly at: number; readonly version: string }
  /** What was due is due now. */
  | { readonly _tag: "Due"; readonly at: number }
  | { readonly _tag: "Confirmed"; readonly at: number }
  /** `whole`: with its task, which lets those that have begun finish. */
  | { readonly _tag: "Cancelled"; readonly at: number; readonly whole: boolean }

type Conduct = Pick<
  UpgradeTask,
  | "status"
  | "version"
  | "timeout"
  | "needAppConfirm"
  | "isAppConfirmed"
  | "upgradePolicy"
  | "retryCount"
  | "retryInterval"
>

export const isFinal = (status: RecordStatus): boolean => status >= 3

/** Whether the device may be given the firmware. */
export const isReleased = (
  { isAppConfirmed, needAppConfirm }: Pick<UpgradeTask, "isAppConfirmed" | "needAppConfirm">,
  { isConfirmed }: Pick<UpgradeRecord, "isConfirmed">
): boolean => !needAppConfirm || isAppConfirmed || isConfirmed

const change = (record: UpgradeRecord, at: number, fields: Partial<UpgradeRecord>): UpgradeRecord => ({
  ...record,
  ...fields,
  updatedAt: at,
  revision: record.revision + 1
})

const end = (record: UpgradeRecord, at: number, status: 3 | 4 | 5, fields: Partial<UpgradeRecord> = {}) =>
  change(record, at, { ...fields, status, dueAt: null })

const begin = (record: UpgradeRecord, { timeout }: Conduct, at: number, fields: Partial<UpgradeRecord> = {}) =>
  change(record, at, {
    ...fields,
    status: 2,
    // A device that has begun keeps its time.
    dueAt: record.status === 2 ? record.dueAt : timeout === 0 ? null : at + timeout * 1000
  })

/** It tries again after a while, unless its task has ended meanwhile; or has failed. */
const fail = (record: UpgradeRecord, task: Conduct, at: number, reason: string): UpgradeRecord => {
  const failures = record.failures + 1
  return failures <= task.retryCount && task.status < 2
    ? change(record, at, { status: 1, step: 0, failures, reason, dueAt: at + task.retryInterval * 1000 })
    : end(record, at, 4, { step: -1, failures, reason })
}

/** The record after the event; the same one when nothing changes. */
export const advance = (record: UpgradeRecord, task: Conduct, event: UpgradeEvent): UpgradeRecord => {
  const { at } = event
  if (isFinal(record.status)) return record
  switch (event._tag) {
    case "HandedOut":
      return record.status === 1 && isReleased(task, record) ? begin(record, task, at, { step: 0 }) : record
    case "Progressed":
      // Of something else: this it has not been given.
      if (record.status === 1 && !isReleased(task, record)) return record
      if (event.step < 0) return fail(record, task, at, event.description)
      return begin(record, task, at, { step: event.step, reason: event.description })
    case "VersionReported":
      return event.version === task.version ? end(record, at, 3, { step: 100, reason: "" }) : record
    case "Due":
      if (record.dueAt === null || record.dueAt > at) return record
      return record.status === 2 ? fail(record, task, at, "timed out") : change(record, at, { dueAt: null })
    case "Confirmed":
      return record.isConfirmed ? record : change(record, at, { isConfirmed: true })
    case "Cancelled":
      return event.whole && record.status === 2 ? record : end(record, at, 5, { reason: "cancelled" })
  }
}

/** Devices of a task. */
export const deviceCount = ({ cancelled, failed, pending, succeeded, upgrading }: RecordCounts): number =>
  pending + upgrading + succeeded + failed + cancelled

/** What the records of an upgrade task imply; one that was cancelled stays so. */
export const taskStatus = (status: TaskStatus, counts: RecordCounts): TaskStatus => {
  if (status === 4) return 4
  if (counts.pending + counts.upgrading > 0) return counts.pending === deviceCount(counts) ? 0 : 1
  return counts.succeeded > 0 || deviceCount(counts) === 0 ? 2 : 3
}

/** Whether so many have failed that the rest is not tried. */
export const isAborted = (
  { abortMinExecuted, abortThresholdPercent, counts, status }: Pick<
    UpgradeTask,
    "abortMinExecuted" | "abortThresholdPercent" | "counts" | "status"
  >
): boolean => {
  const executed = counts.succeeded + counts.failed
  return abortThresholdPercent > 0 && status < 2 && executed >= abortMinExecuted &&
    counts.failed * 100 >= executed * abortThresholdPercent
}
