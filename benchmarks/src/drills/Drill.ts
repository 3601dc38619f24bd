/**
 * The shape of a drill: a fault of the cloud's own parts, under load.
 */
import { type Counts, faultKinds } from "./Ledger.ts"

/** Seconds for each change, or as long as it takes. */
export type Form = "short" | "long"

export interface Drill {
  readonly name: string
  /** What happens, as the table and the documentation say it. */
  readonly does: string
  /** The forms that there are. */
  readonly forms: ReadonlyArray<Form>
  /** `undefined` if it is not possible on this machine. */
  readonly run: (form: Form) => Promise<Result | undefined>
}

export interface Result extends Counts {
  /** Milliseconds until all was as before; undefined: nothing was to recover. */
  readonly recovery?: number
  /** Default 15,000 milliseconds. */
  readonly maxRecovery?: number
  /** What else is wrong, as sentences. */
  readonly missed?: ReadonlyArray<string>
}

const maxRecovery = 15_000

/** What is wrong, as sentences; empty: all bars hold. */
export const judge = (
  { acknowledged, faults, missed = [], recovery = 0, ...result }: Result
): ReadonlyArray<string> => {
  const limit = result.maxRecovery ?? maxRecovery
  return [
    ...acknowledged === 0 ? ["nothing was acknowledged"] : [],
    ...recovery > limit ? [`not recovered after ${limit / 1000} s`] : [],
    ...missed,
    ...faultKinds.flatMap((kind) => faults[kind])
  ]
}

const row = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |\n`

const columns = [
  "drill",
  "acknowledged",
  "again",
  "lost",
  "doubled",
  "out of order",
  "false status",
  "ghosts",
  "recovered",
  "bars"
]

export const head = row(columns) + row(columns.map(() => "---"))

export const rowOf = (name: string, result: Result): string => {
  const { acknowledged, again, faults, recovery } = result
  return row([
    name,
    ...[acknowledged, again, ...faultKinds.map((kind) => faults[kind].length)].map(String),
    recovery === undefined ? "" : `${(recovery / 1000).toFixed(1)} s`,
    judge(result).length === 0 ? "hold" : "missed"
  ])
}
