/**
 * How far a task was at each time since it was created, and why devices have
 * failed (docs/decisions/0119-progress-of-upgrade-tasks.md).
 */
import { isOngoing } from "./UpgradeStateMachine.ts"
import type { OtaTask, RecordCounts } from "./UpgradeTask.ts"

/** How exactly the store remembers the counts of a task, milliseconds. */
export const progressResolution = 10_000

/** Intervals of the progress of a task, at most. */
export const maxProgressPoints = 200

/** Reasons that `UpgradeTasks.failures` returns, at most. */
export const maxFailureReasons = 50

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** Lengths of intervals, milliseconds. Longer ones are multiples of the last. */
const lengths = [
  progressResolution,
  30_000,
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * minute),
  ...[1, 2, 3, 6, 12].map((hours) => hours * hour),
  ...[1, 2, 7].map((days) => days * day)
]

/** The counts of a task over time. Times are Unix milliseconds. */
export interface TaskProgress {
  /** When the task was created. */
  readonly from: number
  /** Now; of a task that has ended with all its devices: its latest change. */
  readonly to: number
  /** Of points, milliseconds. */
  readonly interval: number
  /** One for each interval that begins between `from` and `to`, the oldest first. */
  readonly points: ReadonlyArray<{
    /** The start of the interval, a multiple of its length; that of the first one may lie before `from`. */
    readonly time: number
    /** At the end of the interval, or at `to`. */
    readonly counts: RecordCounts
  }>
}

/** Devices that have failed for the same reason. */
export interface FailureCount {
  readonly reason: string
  readonly devices: number
}

/** Why the devices of a task have failed. */
export interface TaskFailures {
  /** Devices that have failed. */
  readonly devices: number
  /** The most frequent ones first, at most `maxFailureReasons`. */
  readonly reasons: ReadonlyArray<FailureCount>
}

/** The shortest intervals that are enough for the time of the task until `now`, without their counts. */
export const progressIntervals = (
  task: OtaTask,
  now: number
): Omit<TaskProgress, "points"> & { readonly times: ReadonlyArray<number> } => {
  const from = task.createdAt
  const hasEnded = !isOngoing(task) && task.counts.pending + task.counts.upgrading === 0
  const to = Math.max(from, hasEnded ? task.updatedAt : now)
  const timesOf = (interval: number) => Math.floor(to / interval) - Math.floor(from / interval) + 1
  const longest = lengths.at(-1)!
  const interval = lengths.find((length) => timesOf(length) <= maxProgressPoints) ??
    Math.ceil((to - from) / longest / (maxProgressPoints - 1)) * longest
  const first = Math.floor(from / interval) * interval
  return { from, to, interval, times: Array.from({ length: timesOf(interval) }, (_, i) => first + i * interval) }
}
