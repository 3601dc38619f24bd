/**
 * Measures a subject and its reference in turns and compares them. Machines are
 * noisy, but ratios within one run are stable.
 */
import type { LoadResult } from "./Measurement.ts"

export interface Measured {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
}

export interface Comparison {
  readonly benchmark: string
  readonly scenario: string
  readonly reference: string
  readonly ours: Measured
  readonly theirs: Measured
  /** Subject divided by reference, the median of all rounds. */
  readonly ratio: number
  /** The lowest ratio that passes. */
  readonly bar: number
}

export const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

/** The medians of all rounds. */
export const summarize = (results: ReadonlyArray<LoadResult>): Measured => ({
  perSecond: Math.round(median(results.map(({ count, seconds }) => count / seconds))),
  p50: median(results.map(({ p50 }) => p50)),
  p99: median(results.map(({ p99 }) => p99))
})

export const rounds = 3

export const compare = async (options: {
  readonly benchmark: string
  readonly scenario: string
  readonly bar: number
  readonly ours: () => Promise<LoadResult>
  /** Measurements by name. */
  readonly references: Readonly<Record<string, { readonly bar?: number; readonly measure: () => Promise<LoadResult> }>>
}): Promise<ReadonlyArray<Comparison>> => {
  const ours: Array<LoadResult> = []
  const theirs = new Map<string, Array<LoadResult>>(Object.keys(options.references).map((name) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    ours.push(await options.ours())
    for (const [name, { measure }] of Object.entries(options.references)) theirs.get(name)!.push(await measure())
  }
  const rate = ({ count, seconds }: LoadResult) => count / seconds
  return Object.entries(options.references).map(([reference, { bar = options.bar }]): Comparison => {
    const results = theirs.get(reference)!
    return {
      benchmark: options.benchmark,
      scenario: options.scenario,
      reference,
      ours: summarize(ours),
      theirs: summarize(results),
      ratio: median(ours.map((result, round) => rate(result) / rate(results[round]!))),
      bar
    }
  })
}
