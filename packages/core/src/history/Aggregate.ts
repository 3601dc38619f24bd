/**
 * Sums up numeric values by intervals of time, one value after the other.
 */
import type { Json } from "../kernel/Json.ts"

/** Which values are summed up, and in what steps. */
export interface HistoryIntervals {
  /** Unix milliseconds, inclusive. The first interval begins here. */
  readonly start: number
  /** Unix milliseconds, inclusive. */
  readonly end: number
  /** The length of an interval in milliseconds, 1 or more. */
  readonly interval: number
}

/** The numeric values of one interval: `time` is in it, `time` + `interval` is not. */
export interface HistoryBucket {
  /** The start of the interval, Unix milliseconds: `start` and a multiple of `interval`. */
  readonly time: number
  /** How many numeric values there are, 1 or more. */
  readonly count: number
  readonly min: number
  readonly max: number
  readonly sum: number
  /** The value of the earliest time; of several with this time, the one that was stored first. */
  readonly first: number
  /** The value of the latest time; of several with this time, the one that was stored last. */
  readonly last: number
}

interface Growing {
  count: number
  min: number
  max: number
  sum: number
  first: number
  firstTime: number
  last: number
  lastTime: number
}

/**
 * Takes samples in any order of time; those of the same time in the order in which
 * they were stored.
 *
 * ```ts
 * const aggregate = new Aggregate({ start: 0, end: 3_600_000, interval: 60_000 })
 * for (const { time, value } of samples) aggregate.add(time, value)
 * const buckets = aggregate.buckets()
 * ```
 */
export class Aggregate {
  readonly #intervals: HistoryIntervals
  readonly #buckets = new Map<number, Growing>()

  constructor(intervals: HistoryIntervals) {
    this.#intervals = intervals
  }

  /** Leaves out what is no number, and what is out of range. */
  add(time: number, value: Json): void {
    const { end, interval, start } = this.#intervals
    if (typeof value !== "number" || time < start || time > end) return
    const at = start + Math.floor((time - start) / interval) * interval
    const bucket = this.#buckets.get(at)
    if (bucket === undefined) {
      this.#buckets.set(at, {
        count: 1,
        min: value,
        max: value,
        sum: value,
        first: value,
        firstTime: time,
        last: value,
        lastTime: time
      })
      return
    }
    bucket.count++
    bucket.sum += value
    if (value < bucket.min) bucket.min = value
    if (value > bucket.max) bucket.max = value
    if (time < bucket.firstTime) {
      bucket.first = value
      bucket.firstTime = time
    }
    if (time >= bucket.lastTime) {
      bucket.last = value
      bucket.lastTime = time
    }
  }

  /** By time. Intervals without a value are left out. */
  buckets(): ReadonlyArray<HistoryBucket> {
    return [...this.#buckets].sort(([a], [b]) => a - b).map(([time, { count, first, last, max, min, sum }]) => ({
      time,
      count,
      min,
      max,
      sum,
      first,
      last
    }))
  }
}
