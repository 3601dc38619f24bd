/**
 * Findings as rows of a table.
 */
import type { Finding } from "./Fairness.ts"
import type { Summary } from "./Series.ts"

const row = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |\n`

const columns = [
  "attack",
  "storage",
  "posts p50/p99 ms",
  "attacked",
  "requests p50/p99 ms",
  "attacked",
  "connects attacked",
  "MiB",
  "given back",
  "counts",
  "bars"
]

export const head = row(columns) + row(columns.map(() => "---"))

const number = (millis: number): string => millis.toFixed(millis < 10 ? 1 : 0)
const quiet = ({ p50, p99 }: Summary): string => `${number(p50)} / ${number(p99)}`
const attacked = (summary: Summary): string => `${quiet(summary)}, max ${number(summary.max)}`
const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(0)

export const rowOf = (finding: Finding): string =>
  row([
    finding.attack,
    finding.storage,
    quiet(finding.quiet.posts),
    attacked(finding.attacked.posts),
    quiet(finding.quiet.requests),
    attacked(finding.attacked.requests),
    attacked(finding.attacked.connects),
    `${mebibytes(finding.quietBytes)} → ${mebibytes(finding.peakBytes)}`,
    finding.givenBackMillis === undefined
      ? `${mebibytes(finding.leftBytes)} MiB and ${finding.leftFiles} files more after a minute`
      : `${(finding.givenBackMillis / 1000).toFixed(0)} s`,
    Object.entries(finding.counts).map(([name, count]) => `${count} ${name}`).join(", "),
    finding.missed.length === 0 ? "hold" : finding.missed.join("; ")
  ])
