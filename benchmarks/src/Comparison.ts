/**
 * Measures a subject and its references in turns and compares them. Machines are
 * noisy, but ratios within one run are stable.
 */
import type { LoadResult, Times } from "./Measurement.ts"
import { tolerated, withOthers } from "./suite/Others.ts"

export interface Measured {
  /** Per second, or what the scenario says. */
  readonly value: number
  /** Milliseconds. */
  readonly p50?: number
  readonly p99?: number
}

interface RowKey {
  readonly benchmark: string
  readonly scenario: string
  readonly reference: string
}

export interface Comparison extends RowKey {
  readonly ours: Measured
  readonly theirs: Measured
  /** How good the subject is beside its reference, the median of all rounds: 2 is twice as good. */
  readonly ratio: number
  /** The lowest and the highest ratio of a round. */
  readonly spread?: readonly [lowest: number, highest: number]
  /** The lowest ratio that passes. Absent: no bar. */
  readonly bar?: number
  /** Which part of the machine's processor time others took, 0 to 1. Absent: that of the whole part. */
  readonly others?: number
}

/** What could not be measured here. */
export interface LeftOut extends RowKey {
  readonly leftOut: string
}

export type Row = Comparison | LeftOut

/** What is measured by itself: one scenario, or several that need the same servers. */
export type Part = () => Promise<ReadonlyArray<Row>>

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (index: number): number => sorted[index] ?? Number.NaN
  return (at(Math.floor((sorted.length - 1) / 2)) + at(Math.floor(sorted.length / 2))) / 2
}

const spreadOf = (values: ReadonlyArray<number>): readonly [number, number] => [
  Math.min(...values),
  Math.max(...values)
]

/** The medians of all rounds. */
const summarize = (results: ReadonlyArray<LoadResult>): Measured => ({
  value: Math.round(median(results.map(rateOf))),
  p50: median(results.map(({ p50 }) => p50)),
  p99: median(results.map(({ p99 }) => p99))
})

const rateOf = ({ count, seconds }: LoadResult) => count / seconds

/** Many short rounds say more than one long one: the machine changes in between. */
export const rounds = 3

/** Of so many rounds at least others must have taken little. */
const quietRounds = 2

/** The warm-up is that of the load, whose process is a new one in each round. */
export const times: Times = { warmupMillis: 1000, measureMillis: 800 }

/** The first round warms up the servers, too. */
export const firstTimes: Times = { ...times, untilSteady: true }

export type Measure = (times: Times) => Promise<LoadResult>

export interface Reference {
  /** The lowest ratio that passes. Absent: no bar. */
  readonly bar?: number
  /** Or why it cannot be measured here. */
  readonly measure: Measure | { readonly leftOut: string }
}

/** Measures in turns. Rounds during which others took much of the machine do not count, if enough are left. */
export const compare = async ({ benchmark, ours, references, scenario }: {
  readonly benchmark: string
  readonly scenario: string
  readonly ours: Measure
  readonly references: Readonly<Record<string, Reference>>
}): Promise<ReadonlyArray<Row>> => {
  const measured: Array<{ readonly others: number; readonly value: Readonly<Record<string, LoadResult>> }> = []
  const ourName = ""
  for (let round = 0; round < rounds; round++) {
    const ofRound = round === 0 ? firstTimes : times
    measured.push(
      await withOthers(async () => {
        const results: Record<string, LoadResult> = { [ourName]: await ours(ofRound) }
        for (const [name, { measure }] of Object.entries(references)) {
          if (typeof measure === "function") results[name] = await measure(ofRound)
        }
        return results
      })
    )
  }
  const quiet = measured.filter(({ others }) => others <= tolerated)
  const counted = quiet.length >= quietRounds ? quiet : measured
  const resultsOf = (name: string) => counted.map(({ value }) => value[name]!)
  return Object.entries(references).map(([reference, { bar, measure }]): Row => {
    if (typeof measure !== "function") return { benchmark, scenario, reference, leftOut: measure.leftOut }
    const ratios = counted.map(({ value }) => rateOf(value[ourName]!) / rateOf(value[reference]!))
    return {
      benchmark,
      scenario,
      reference,
      ours: summarize(resultsOf(ourName)),
      theirs: summarize(resultsOf(reference)),
      ratio: median(ratios),
      spread: spreadOf(ratios),
      ...bar === undefined ? {} : { bar },
      others: median(counted.map(({ others }) => others))
    }
  })
}

/** Holds values, of which less is better, against a limit: the ratio is 1 and more within it. */
export const within = ({ limit, unit, values, ...key }: {
  readonly benchmark: string
  readonly scenario: string
  readonly unit: string
  readonly limit: number
  readonly values: ReadonlyArray<number>
}): Comparison => {
  const ratios = values.map((value) => limit / value)
  return {
    ...key,
    reference: `the limit, ${unit}`,
    ours: { value: median(values), ...values.length > 1 ? { p50: median(values), p99: Math.max(...values) } : {} },
    theirs: { value: limit },
    ratio: median(ratios),
    ...values.length > 1 ? { spread: spreadOf(ratios) } : {},
    bar: 1
  }
}
