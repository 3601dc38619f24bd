/**
 * `npm run bench`: runs the usual benchmarks, or the named ones, and prints their
 * ratios to the references. `--compare` holds them against the committed table and
 * ends with 1 if a row has fallen twice, and with 3 if rows are spoilt; `--save`
 * makes them the committed table. It ends with 1 if a benchmark has failed.
 * `--profile` shows what operations cost by stage instead, and writes it into
 * `docs/performance.md`.
 * `npm run bench -- curves` draws the curves of that page, or the named ones.
 */
import { mkdir, writeFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import type { Part, Row } from "./Comparison.ts"
import { curvesName, measureCurve, named } from "./curves/Curves.ts"
import { publish, sentenceOf } from "./curves/Page.ts"
import { attackNames, fairness, storages } from "./fairness/Fairness.ts"
import { head, rowOf } from "./fairness/Report.ts"
import { profileAll } from "./profile/Profiling.ts"
import { type Arguments, fairnessName, InvalidArgument, read } from "./suite/Arguments.ts"
import * as Baseline from "./suite/Baseline.ts"
import { benchmarks } from "./suite/Benchmarks.ts"
import { textOf, thisMachine } from "./suite/Machine.ts"
import { withOthers } from "./suite/Others.ts"
import { cellsOf, columns, isSpoilt, line } from "./suite/Table.ts"

const orExit = <A>(read: () => A): A => {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof InvalidArgument)) throw error
    process.stderr.write(`${error.message}\n`)
    return process.exit(2)
  }
}

// What was started ends with this process.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130))
const machine = thisMachine()

const results = fileURLToPath(new URL("../results/", import.meta.url))
await mkdir(results, { recursive: true })
const keep = (name: string, measured: object): Promise<void> =>
  writeFile(`${results}${name}.json`, `${JSON.stringify({ machine, ...measured }, undefined, 2)}\n`)

if (process.argv[2] === curvesName) {
  process.stdout.write(`${textOf(machine)}\n\n`)
  for (const curve of orExit(() => named(process.argv.slice(3)))) {
    const measured = await measureCurve(curve, (point) => process.stdout.write(sentenceOf(curve, point)))
    await keep(`${curvesName}-${curve.name}`, measured)
    await publish(curve, measured, machine)
  }
  process.exit()
}

const args: Arguments = orExit(() => read(process.argv.slice(2)))
const baseline = await Baseline.load()

/** Measures a part, and prints its rows. */
const measure = async (part: Part): Promise<ReadonlyArray<Row>> => {
  const { others, value } = await withOthers(part)
  const rows = value.map((row): Row => "ratio" in row ? { others, ...row } : row)
  for (const row of rows) process.stdout.write(line(cellsOf(row)))
  return rows
}

const measured: Array<Row> = []
/** The benchmarks of which a part has failed. Their rows are not saved. */
const failed: Array<string> = []
/** What has fallen twice. */
const accused: Array<string> = []

const compare = async (part: Part): Promise<ReadonlyArray<Row>> => {
  const first = await measure(part)
  const once = args.compare ? Baseline.fallen(baseline, first) : []
  if (once.length === 0) return first
  process.stderr.write("Has fallen by more than a tenth; once more:\n")
  const second = await measure(part)
  for (const row of Baseline.fallen(baseline, second)) {
    const before = once.find(({ reference, scenario }) => scenario === row.scenario && reference === row.reference)
    if (before === undefined) continue
    const ratios = [before, row].map(({ ratio }) => ratio.toFixed(2)).join(" and ")
    accused.push(
      `${row.benchmark}, ${row.scenario}, beside ${row.reference}: ${ratios}, was ${
        Baseline.ratioOf(baseline, row)!.toFixed(2)
      }`
    )
  }
  return second
}

process.stdout.write(`${textOf(machine)}\n\n`)
const begun = performance.now()
if (args.profile) await profileAll(args.names, machine)
const compared = args.profile ? [] : args.names.filter((name) => name !== fairnessName)
if (compared.length > 0) process.stdout.write(line(columns) + line(columns.map(() => "---")))
for (const name of compared) {
  const rows: Array<Row> = []
  let isWhole = true
  for (const part of benchmarks[name]!) {
    try {
      rows.push(...await compare(part))
    } catch (error) {
      isWhole = false
      failed.push(name)
      process.stderr.write(`A part of ${name} has failed: ${String(error)}\n`)
    }
  }
  await keep(name, { rows })
  if (isWhole) measured.push(...rows)
}
if (args.names.includes(fairnessName)) {
  process.stdout.write(head)
  await keep(fairnessName, {
    findings: await fairness(attackNames, storages, (finding) => process.stdout.write(rowOf(finding)))
  })
}
process.stdout.write(`\n${((performance.now() - begun) / 60_000).toFixed(1)} minutes\n`)
if (args.save) {
  const run = { name: `${new Date().toISOString().slice(0, 10)}, ${machine.commit}`, machine }
  await Baseline.store(Baseline.merge(baseline, run, measured, Object.keys(benchmarks)))
}
const spoilt = measured.filter(isSpoilt)
if (spoilt.length > 0) process.stderr.write(`${spoilt.length} rows are spoilt by others and say nothing.\n`)
if (args.compare) {
  for (const sentence of accused) process.stderr.write(`Fallen twice: ${sentence}\n`)
  process.exitCode = accused.length > 0 ? 1 : spoilt.length > 0 ? 3 : 0
}
if (failed.length > 0) process.exitCode = 1
