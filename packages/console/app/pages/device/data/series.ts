/**
 * What a plot of history is made of: points of intervals, and what the device has
 * said since they were read.
 */

/** A point of the history, as the API sums it up. `time`: Unix milliseconds. */
export interface Point {
  readonly time: number
  readonly avg?: number | null | undefined
  readonly min?: number | null | undefined
  readonly max?: number | null | undefined
  readonly last?: number | null | undefined
  readonly count?: number | undefined
}

/** A value that has just come in. */
export interface Arrival {
  readonly id: string
  readonly time: number
  readonly value: number
}

export interface Series {
  readonly id: string
  /** Holds its value until the next one, as states do. */
  readonly isStepped: boolean
  readonly points: ReadonlyArray<Point>
}

/** Points of a plot: about as many as it has pixels to show them. */
const pointsWanted = 600

/** Seconds: lengths that people know. */
const lengths = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 604_800]

/** The length of the intervals of a plot, seconds. */
export const intervalOf = (from: number, to: number): number =>
  lengths.find((length) => (to - from) / 1000 / length <= pointsWanted) ?? 2_592_000

/** Times and lines for a plot; undefined where a line has nothing at the time, null where it is interrupted. */
export const plotOf = (
  series: ReadonlyArray<Series>,
  arrivals: ReadonlyArray<Arrival>,
  interval: number
): {
  readonly times: ReadonlyArray<number>
  readonly values: ReadonlyArray<ReadonlyArray<number | null | undefined>>
} => {
  const lines = series.map((one) => lineOf(one, arrivals, interval))
  const times = [...new Set(lines.flatMap((line) => [...line.keys()]))].sort((a, b) => a - b)
  return { times, values: lines.map((line) => times.map((time) => line.get(time))) }
}

const lineOf = (
  { id, isStepped, points }: Series,
  arrivals: ReadonlyArray<Arrival>,
  interval: number
): ReadonlyMap<number, number | null> => {
  const read = points.map(({ avg, last, time }) => [time, (isStepped ? last : avg) ?? null] as const)
  const end = points.at(-1)?.time ?? 0
  const since = arrivals.filter((arrival) => arrival.id === id && arrival.time > end)
  const line = [...read, ...since.map(({ time, value }) => [time, value] as const)]
  return new Map(isStepped ? line : interrupted(line, interval))
}

/** A device that was silent for much longer than before and after has no line there. */
const interrupted = (line: ReadonlyArray<readonly [number, number | null]>, interval: number) => {
  const step = (index: number) => index < 1 || index >= line.length ? 0 : line[index]![0] - line[index - 1]![0]
  return line.flatMap((point, index) => {
    const silence = Math.max(interval * 3000, 5 * step(index - 1), 5 * step(index + 1))
    return step(index) > silence ? [[line[index - 1]![0] + 1, null] as const, point] : [point]
  })
}

/** What the points of a span say together. */
export const summaryOf = (points: ReadonlyArray<Point>) => {
  const counted = points.filter(({ avg, count }) => (count ?? 0) > 0 && avg !== null && avg !== undefined)
  const count = counted.reduce((sum, point) => sum + point.count!, 0)
  return {
    count,
    min: counted.length === 0 ? undefined : Math.min(...counted.map(({ min }) => min ?? Infinity)),
    max: counted.length === 0 ? undefined : Math.max(...counted.map(({ max }) => max ?? -Infinity)),
    avg: count === 0 ? undefined : counted.reduce((sum, point) => sum + point.avg! * point.count!, 0) / count,
    last: counted.at(-1)?.last ?? undefined
  }
}
