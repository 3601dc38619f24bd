/**
 * The committed rows: what a run is held against, and what the table of the README
 * is made from.
 */
import { readFile, writeFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import type { Comparison, Row } from "../Comparison.ts"
import { type Machine, textOf } from "./Machine.ts"
import { cellsOf, columns, isSpoilt, table } from "./Table.ts"

/** A row, and the run that it comes from. */
export type SavedRow = Omit<Comparison, "others"> & { readonly run: string }

export interface Baseline {
  /** What each run was measured on, by the run's name. */
  readonly runs: Readonly<Record<string, Machine>>
  readonly rows: ReadonlyArray<SavedRow>
}

/** A row whose ratio is lower than this part of the committed one has fallen. */
const fallenBelow = 0.9

const keyOf = ({ benchmark, reference, scenario }: Row | SavedRow): string =>
  [benchmark, scenario, reference].join("\n")

/** The rows that have fallen by more than a tenth. Rows that say nothing have not, nor have new ones. */
export const fallen = (baseline: Baseline, rows: ReadonlyArray<Row>): ReadonlyArray<Comparison> => {
  const before = new Map(baseline.rows.map((row) => [keyOf(row), row]))
  return rows.filter((row): row is Comparison =>
    "ratio" in row && !isSpoilt(row) && row.ratio < (before.get(keyOf(row))?.ratio ?? 0) * fallenBelow
  )
}

/** The committed ratio of a row. */
export const ratioOf = (baseline: Baseline, row: Row): number | undefined =>
  baseline.rows.find((saved) => keyOf(saved) === keyOf(row))?.ratio

const rounded = (value: number): number => Number(value.toPrecision(4))

const saved = (row: Comparison, run: string): SavedRow => ({
  ...JSON.parse(
    JSON.stringify(
      row,
      (name, value) => name === "others" ? undefined : typeof value === "number" ? rounded(value) : value
    )
  ),
  run
})

/**
 * The baseline with the rows of a run in the place of all former rows of their
 * benchmarks. Rows that say nothing do not replace former ones.
 */
export const merge = (
  { rows, runs }: Baseline,
  run: { readonly name: string; readonly machine: Machine },
  measured: ReadonlyArray<Row>,
  order: ReadonlyArray<string>
): Baseline => {
  const benchmarks = new Set(measured.map(({ benchmark }) => benchmark))
  const before = new Map(rows.map((row) => [keyOf(row), row]))
  const replaced = measured.flatMap((row): ReadonlyArray<SavedRow> => {
    if ("ratio" in row && !isSpoilt(row)) return [saved(row, run.name)]
    const former = before.get(keyOf(row))
    return former === undefined ? [] : [former]
  })
  const merged = [...rows.filter(({ benchmark }) => !benchmarks.has(benchmark)), ...replaced]
    .sort((a, b) => order.indexOf(a.benchmark) - order.indexOf(b.benchmark))
  const used = new Set(merged.map(({ run }) => run))
  return {
    runs: Object.fromEntries(
      Object.entries({ ...runs, [run.name]: run.machine }).filter(([name]) => used.has(name))
    ),
    rows: merged
  }
}

/** The table of the README. With rows of several runs it says which row is of which. */
export const render = ({ rows, runs }: Baseline): string => {
  const names = Object.keys(runs)
  const several = names.length > 1
  const machines = names.map((name) =>
    several ? `- ${name}: ${textOf(runs[name]!)}\n` : `${textOf(runs[name]!)}, ${name}.\n`
  )
  const cells = rows.map((row) => [...cellsOf(row), ...several ? [row.run] : []])
  return `${machines.join("")}\n${table([[...columns, ...several ? ["run"] : []], ...cells])}`
}

const file = (name: string) => fileURLToPath(new URL(`../../${name}`, import.meta.url))
const begin = "<!-- baseline: made by npm run bench -- --save -->\n"
const end = "<!-- baseline: end -->\n"

export const load = async (): Promise<Baseline> => JSON.parse(await readFile(file("baseline.json"), "utf8")) as Baseline

/** Writes the baseline, and its table into the README. */
export const store = async (baseline: Baseline): Promise<void> => {
  await writeFile(file("baseline.json"), `${JSON.stringify(baseline, undefined, 2)}\n`)
  const readme = await readFile(file("README.md"), "utf8")
  const [from, to] = [readme.indexOf(begin), readme.indexOf(end)]
  if (from === -1 || to === -1) throw new Error("README.md has no place for the table")
  await writeFile(file("README.md"), `${readme.slice(0, from)}${begin}\n${render(baseline)}\n${readme.slice(to)}`)
}
