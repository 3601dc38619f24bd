/**
 * Rows as a table of Markdown.
 */
import type { Comparison, Measured, Row } from "../Comparison.ts"
import { tolerated } from "./Others.ts"

export const columns = [
  "benchmark",
  "scenario",
  "ours",
  "p50 / p99 ms",
  "reference",
  "its",
  "ratio",
  "lowest to highest",
  "bar"
]

const numberText = (value: number): string =>
  value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)

const latencyText = ({ p50, p99 }: Measured): string =>
  p50 === undefined || p99 === undefined ? "" : `${p50.toFixed(1)} / ${p99.toFixed(1)}`

const barText = ({ bar, ratio }: Comparison): string =>
  bar === undefined ? "none" : `≥ ${Number(bar.toFixed(2))}${ratio < bar ? " missed" : ""}`

/** Whether others took so much of the machine that the row says nothing. */
export const isSpoilt = (row: Row): boolean => "ratio" in row && (row.others ?? 0) > tolerated

/** The cells of a row. A row that says nothing tells why. */
export const cellsOf = (row: Row): ReadonlyArray<string> => {
  const { benchmark, reference, scenario } = row
  if ("leftOut" in row) return [benchmark, scenario, "", "", reference, "", "left out", row.leftOut, ""]
  if (isSpoilt(row)) {
    const share = `others took ${Math.round(row.others! * 100)} % of the machine`
    return [benchmark, scenario, "", "", reference, "", "spoilt", share, barText({ ...row, ratio: row.bar ?? 0 })]
  }
  return [
    benchmark,
    scenario,
    numberText(row.ours.value),
    latencyText(row.ours),
    reference,
    numberText(row.theirs.value),
    numberText(row.ratio),
    row.spread === undefined ? "" : row.spread.map(numberText).join(" to "),
    barText(row)
  ]
}

/** A line of a table that is still growing. */
export const line = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |\n`

/** A whole table, its columns aligned as the formatter does it. */
export const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = rows[0]!.map((_, column) => Math.max(3, ...rows.map((cells) => cells[column]!.length)))
  const aligned = rows.map((cells) => line(cells.map((cell, column) => cell.padEnd(widths[column]!))))
  const [head, ...rest] = aligned
  return [head, line(widths.map((width) => "-".repeat(width))), ...rest].join("")
}
