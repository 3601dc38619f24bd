/**
 * `npm run sim -- --seed 7 --devices 10000 --days 1`: runs fleets in virtual time
 * (docs/simulation.md). Ends with 1 if something has happened that must not happen.
 */
import { Plan, run, shrink, testOf } from "@device-cloud/testing/simulation"
import { closeSync, openSync, writeSync } from "node:fs"
import { parseArgs } from "node:util"

const { values } = parseArgs({
  allowNegative: true,
  options: {
    /** The first seed. */
    seed: { type: "string", default: "1" },
    /** How many seeds, one after the other. */
    seeds: { type: "string", default: "1" },
    devices: { type: "string", default: "50" },
    days: { type: "string", default: "0" },
    hours: { type: "string", default: "0" },
    minutes: { type: "string", default: "0" },
    nodes: { type: "string", default: "3" },
    /** Whether to make a plan that has failed smaller. */
    shrink: { type: "boolean", default: true },
    /** A file that the history is written to. */
    log: { type: "string" }
  }
})

const number = (name: "seed" | "seeds" | "devices" | "days" | "hours" | "minutes" | "nodes"): number => {
  const value = Number(values[name])
  if (!Number.isFinite(value) || value < 0) throw new Error(`--${name}: expected a number, not ${values[name]}`)
  return value
}

const minutes = number("days") * 1440 + number("hours") * 60 + number("minutes") || 120
const file = values.log === undefined ? undefined : openSync(values.log, "w")

let failures = 0
for (let seed = number("seed"); seed < number("seed") + number("seeds"); seed++) {
  const plan = Plan.make({ seed, devices: number("devices"), minutes, nodes: number("nodes") })
  const begun = performance.now()
  const outcome = run(plan, { log: file === undefined ? undefined : (line) => void writeSync(file, line) })
  const { counts, digest, violations } = outcome
  const seconds = ((performance.now() - begun) / 1000).toFixed(1)
  const what = Object.entries(counts).map(([name, count]) => `${count} ${name}`).join(", ")
  process.stdout.write(`seed ${seed}: ${what}; ${seconds} s; ${digest}\n`)
  for (const { at, invariant, message } of violations) {
    process.stdout.write(`  ${new Date(at).toISOString()} ${invariant}: ${message}\n`)
  }
  if (violations.length === 0) continue
  failures++
  if (values.shrink) process.stdout.write(testOf(shrink(plan, outcome)))
}
if (file !== undefined) closeSync(file)
if (failures > 0) {
  process.stdout.write(`${failures} of ${number("seeds")} seeds have failed\n`)
  process.exitCode = 1
}
