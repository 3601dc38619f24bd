/**
 * The parts of `docs/performance.md` that are made: a table for each operation, between markers.
 */
import { readFile, writeFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import type { Budget } from "./Budget.ts"
import type { Operation } from "./Operations.ts"
import type { Stage } from "./Stages.ts"

const docs = new URL("../../../docs/", import.meta.url)
const page = fileURLToPath(new URL("performance.md", docs))

/** Stages below this part of the whole are one line. */
const smallest = 0.01

const micros = (time: number): string => time.toFixed(time < 10 ? 2 : 1)

/** A table whose columns are as wide as their cells. */
export const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = rows[0]!.map((_, column) => Math.max(3, ...rows.map((row) => row[column]!.length)))
  const line = (cells: ReadonlyArray<string>, fill: string) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column]!, fill)).join(" | ")} |`
  const [head = [], ...body] = rows
  return [line(head, " "), line(head.map(() => ""), "-"), ...body.map((row) => line(row, " "))].join("\n")
}

export const tableOf = ({ stages, total }: Budget, floors: Partial<Record<Stage, number>>): string => {
  const shown = [...stages].filter(([stage, time]) => floors[stage] !== undefined || time >= total * smallest)
  const rest = total - shown.reduce((sum, [, time]) => sum + time, 0)
  const row = (name: string, time: number, floor: number | undefined) => [
    name,
    micros(time),
    `${(time / total * 100).toFixed(0)} %`,
    floor === undefined ? "" : micros(floor),
    floor === undefined ? "" : `${(time / floor).toFixed(1)} ×`
  ]
  const floor = Object.values(floors).reduce((sum, time) => sum + time, 0)
  return table([
    ["stage", "µs", "part", "floor µs", "of floor"],
    ...shown.map(([stage, time]) => row(stage, time, floors[stage])),
    row("all others", rest, undefined),
    row("**whole**", total, floor)
  ])
}

const graphOf = ({ name }: Operation): string => `performance/${name}.svg`

export const blockOf = (operation: Operation, budget: Budget, floors: Partial<Record<Stage, number>>): string => {
  const [[first] = [""], [second] = [""]] = [...budget.stages].sort(([, a], [, b]) => b - a)
  const alternative = `${operation.title}: flame graph of the server's JavaScript. ` +
    `Most of the whole goes to ${first}, then to ${second}.`
  return `${tableOf(budget, floors)}\n\n![${alternative}](${graphOf(operation)})`
}

export const writeGraph = (operation: Operation, svg: string): Promise<void> =>
  writeFile(new URL(graphOf(operation), docs), svg)

/** Puts a text in the place of what stands between the markers of this name. */
export const writeBlock = async (name: string, block: string): Promise<void> => {
  const text = await readFile(page, "utf8")
  const begin = `<!-- figures: ${name} -->`
  const end = "<!-- end of figures -->"
  const from = text.indexOf(begin)
  const until = text.indexOf(end, from)
  if (from === -1 || until === -1) throw new Error(`docs/performance.md has no place for the figures of ${name}`)
  await writeFile(page, `${text.slice(0, from + begin.length)}\n\n${block}\n\n${text.slice(until)}`)
}
