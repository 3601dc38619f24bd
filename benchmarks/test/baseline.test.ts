import { assert, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import type { Comparison } from "../src/Comparison.ts"
import { fallen, load, merge, render } from "../src/suite/Baseline.ts"
import { cellsOf } from "../src/suite/Table.ts"

const machine = { cpu: "cpu", cores: 2, memoryGiB: 8, system: "linux x64", node: "v20", commit: "abc" }

const row = (reference: string, ratio: number, more: Partial<Comparison> = {}): Comparison => ({
  benchmark: "downlink",
  scenario: "memory",
  reference,
  ours: { value: 100 * ratio },
  theirs: { value: 100 },
  ratio,
  bar: 0.8,
  ...more
})

const before = merge({ runs: {}, rows: [] }, { name: "first", machine }, [row("a", 1), row("b", 1)], ["downlink"])

it("a row has fallen when its ratio is lower by more than a tenth", () => {
  const rows = [row("a", 0.91), row("b", 0.89), row("new", 0.1)]
  assert.deepStrictEqual(fallen(before, rows).map(({ reference }) => reference), ["b"])
})

it("a row that others have spoilt has not fallen, and shows no figures", () => {
  const spoilt = row("a", 0.5, { others: 0.3 })
  assert.deepStrictEqual(fallen(before, [spoilt]), [])
  assert.notInclude(cellsOf(spoilt), "0.50")
  assert.include(cellsOf(spoilt), "spoilt")
})

it("a missed bar is shown as missed", () => {
  assert.include(cellsOf(row("a", 0.79)), "≥ 0.8 missed")
  assert.include(cellsOf(row("a", 0.81)), "≥ 0.8")
})

it("a saved run replaces the rows of its benchmarks, but not by spoilt ones", () => {
  const other = { ...row("a", 3), benchmark: "http-read" }
  const both = merge(before, { name: "first", machine }, [other], ["http-read", "downlink"])
  const after = merge(both, { name: "second", machine }, [row("a", 2), row("b", 2, { others: 0.3 })], [
    "http-read",
    "downlink"
  ])
  assert.deepStrictEqual(after.rows.map(({ ratio, reference, run }) => [reference, ratio, run]), [
    ["a", 3, "first"],
    ["a", 2, "second"],
    ["b", 1, "first"]
  ])
  assert.deepStrictEqual(Object.keys(after.runs), ["first", "second"])
  const replaced = merge(after, { name: "third", machine }, [row("a", 2)], ["http-read", "downlink"])
  assert.deepStrictEqual(replaced.rows.map(({ run }) => run), ["first", "third"])
})

it("the table of the README is that of the committed rows", async () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8")
  assert.include(readme, render(await load()))
})
