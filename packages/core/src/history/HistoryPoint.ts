/**
 * Points of a plot, made from the numeric values of intervals.
 */
import type { HistoryBucket } from "./Aggregate.ts"
import type { HistoryFunction, HistoryPlot } from "./HistoryRead.ts"

/** The numeric values of one interval. A number that is too large for JSON is null. */
export interface HistoryPoint extends Readonly<Record<HistoryFunction, number | null>> {
  /** The start of the interval, Unix milliseconds. */
  readonly time: number
  /** How many numeric values the interval has. */
  readonly count: number
}

/**
 * Returns the points of a plot. `buckets`: by time; `before`: the latest numeric
 * value before the plot, null if there is none.
 *
 * A point that is filled in has `count` and `sum` 0. Its other numbers are null, or
 * with `previous` the latest value before it.
 */
export const pointsOf = (
  buckets: ReadonlyArray<HistoryBucket>,
  plot: HistoryPlot,
  before: number | null
): ReadonlyArray<HistoryPoint> => {
  const points = plot.fill === "none" ? buckets.map(pointOf) : filled(buckets, plot, before)
  return plot.order === "asc" ? points : points.toReversed()
}

const pointOf = ({ count, first, last, max, min, sum, time }: HistoryBucket): HistoryPoint => ({
  time,
  avg: finite(sum / count),
  min,
  max,
  first,
  last,
  count,
  sum: finite(sum)
})

const finite = (value: number): number | null => Number.isFinite(value) ? value : null

const filled = (
  buckets: ReadonlyArray<HistoryBucket>,
  { end, fill, interval, start }: HistoryPlot,
  before: number | null
): ReadonlyArray<HistoryPoint> => {
  const points: Array<HistoryPoint> = []
  let held = fill === "previous" ? before : null
  let next = 0
  for (let time = start; time <= end; time += interval) {
    const bucket = buckets[next]
    if (bucket?.time === time) {
      points.push(pointOf(bucket))
      if (fill === "previous") held = bucket.last
      next++
    } else points.push({ time, avg: held, min: held, max: held, first: held, last: held, count: 0, sum: 0 })
  }
  return points
}
