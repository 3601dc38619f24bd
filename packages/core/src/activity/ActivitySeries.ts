/**
 * The activity of a project as a series of points (docs/api/overview.md).
 */
import { Effect } from "effect"
import { InvalidInput } from "../kernel/InvalidInput.ts"
import type { ActivityMeasure, ActivityRange, ActivitySum } from "./ActivityStore.ts"

/** Points of one series, at most. */
export const maxActivityPoints = 500

/** How long counts by minute are kept, minutes. */
export const minutesKept = 2 * 24 * 60
/** How long counts by hour are kept, minutes. */
export const hoursKept = 31 * 24 * 60

/** The period of a series whose caller names none, minutes. */
const defaultPeriod = 3 * 60

/** Lengths of intervals, minutes: those of counts by minute, and those of counts by hour. */
const fineIntervals = [1, 2, 5, 10]
const coarseIntervals = [60, 120]

/** What has happened in a project during an interval. */
export interface ActivityPoint {
  /** The start of the interval, Unix milliseconds. */
  readonly time: number
  /** Devices that were online, on average. */
  readonly devicesOnline: number
  /** Messages of devices: those that took effect, and those that were refused, by reply code. */
  readonly messages: { readonly accepted: number; readonly refused: Readonly<Record<string, number>> }
  /**
   * Commands that have ended: with the success of the device, by the code of its
   * failure (`no_reply`: the cloud has given up), and because their time was over.
   */
  readonly commands: {
    readonly replied: number
    readonly failed: Readonly<Record<string, number>>
    readonly expired: number
  }
  /** Executions of scenes that have ended. */
  readonly executions: { readonly succeeded: number; readonly failed: number }
}

export interface ActivitySeries {
  /** Unix milliseconds, inclusive. */
  readonly from: number
  /** Unix milliseconds, exclusive. */
  readonly to: number
  /** Of points, seconds. */
  readonly interval: number
  /** One for each interval, the oldest first. */
  readonly points: ReadonlyArray<ActivityPoint>
}

/**
 * Chooses the whole intervals that cover the period: those of minutes if it lies in the
 * last 48 hours, and as short as `maxActivityPoints` allow. Nothing is older than 31
 * days, and nothing is newer than the last whole minute. Times are Unix milliseconds.
 */
export const activityRange = (
  period: { readonly from?: number | undefined; readonly to?: number | undefined },
  now: number
): Effect.Effect<Omit<ActivityRange, "projectId">, InvalidInput> => {
  const present = minuteOf(now)
  const to = Math.min(period.to === undefined ? present : Math.ceil(period.to / 60_000), present)
  const from = Math.max(period.from === undefined ? to - defaultPeriod : minuteOf(period.from), present - hoursKept)
  if (from >= to) {
    return Effect.fail(InvalidInput.of("from", "Expected a time before `to`, and a whole minute that is over"))
  }
  const intervals = from >= present - minutesKept ? [...fineIntervals, ...coarseIntervals] : coarseIntervals
  const interval = intervals.find((length) => Math.ceil(to / length) - Math.floor(from / length) <= maxActivityPoints)!
  return Effect.succeed({
    from: Math.floor(from / interval) * interval,
    to: Math.min(Math.ceil(to / interval) * interval, present),
    interval
  })
}

export const minuteOf = (millis: number): number => Math.floor(millis / 60_000)

/**
 * The parts of a range that are read apart. What counts of hours have of the present
 * hour is newer than the range: its minutes are read.
 */
export const activityParts = (
  { from, interval, to }: Omit<ActivityRange, "projectId">
): ReadonlyArray<Omit<ActivityRange, "projectId">> => {
  const hour = to - to % 60
  return interval < 60 || hour === to
    ? [{ from, to, interval }]
    : [{ from, to: hour, interval }, { from: hour, to, interval: 1 }]
}

/** Makes the points of a range from what is stored of its parts. */
export const activitySeries = (
  { from, interval, to }: Omit<ActivityRange, "projectId">,
  sums: ReadonlyArray<ActivitySum>
): ActivitySeries => {
  const byMinute = new Map<number, Array<ActivitySum>>()
  for (const sum of sums) {
    const first = sum.minute - sum.minute % interval
    const others = byMinute.get(first)
    if (others === undefined) byMinute.set(first, [sum])
    else others.push(sum)
  }
  const points: Array<ActivityPoint> = []
  for (let minute = from; minute < to; minute += interval) {
    points.push(pointOf(minute, Math.min(interval, to - minute), byMinute.get(minute) ?? []))
  }
  return { from: from * 60_000, to: to * 60_000, interval: interval * 60, points }
}

const pointOf = (minute: number, length: number, sums: ReadonlyArray<ActivitySum>): ActivityPoint => {
  const total = (measure: ActivityMeasure) =>
    sums.reduce((total, sum) => total + (sum.measure === measure ? sum.count : 0), 0)
  const byCode = (measure: ActivityMeasure) => {
    const counts: Record<string, number> = {}
    for (const sum of sums) if (sum.measure === measure) counts[sum.code] = (counts[sum.code] ?? 0) + sum.count
    return counts
  }
  return {
    time: minute * 60_000,
    devicesOnline: Math.round(total("online") / length),
    messages: { accepted: total("accepted"), refused: byCode("refused") },
    commands: { replied: total("replied"), failed: byCode("failed"), expired: total("expired") },
    executions: { succeeded: total("executed"), failed: total("execution-failed") }
  }
}
