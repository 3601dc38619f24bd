/**
 * `npm run sim -- --seed 7 --devices 10000 --days 1`: runs fleets in virtual time
 * (docs/simulation.md). Ends with 1 if something has happened that must not happen.
 */
import { Plan, run, shrink, testOf } from "@device-cloud/testing/simulation"
import { closeSync, openSync, writeSync } from "node:fs"
import { parseArgs } from "node:util"

/** Ends the program with a sentence. */
const refuse = (reason: string): never => {
  process.stderr.write(`${reason}\nnpm run sim -- --seed 7 --devices 10000 --days 1 (docs/simulation.md)\n`)
  process.exit(2)
}

const readArguments = () => {
  try {
    return parseArgs({
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
    }).values
  } catch (error) {
    return refuse((error as Error).message)
  }
}

const values = readArguments()

/** How long, in the unit of its name. */
const time = (name: "days" | "hours" | "minutes"): number =>
  /^\d+(\.\d+)?$/.test(values[name])
    ? Number(values[name])
    : refuse(`--${name}: expected a number, not ${values[name]}`)

const whole = (name: "seed" | "seeds" | "devices" | "nodes", least: number): number =>
  /^\d+$/.test(values[name]) && Number(values[name]) >= least
    ? Number(values[name])
    : refuse(`--${name}: expected a whole number from ${least}, not ${values[name]}`)

const seeds = whole("seeds", 1)
const first = whole("seed", 0)
const devices = whole("devices", 1)
const nodes = whole("nodes", 1)
const minutes = time("days") * 1440 + time("hours") * 60 + time("minutes") || 120
const file = values.log === undefined ? undefined : openSync(values.log, "w")

let failures = 0
for (let seed = first; seed < first + seeds; seed++) {
  const plan = Plan.make({ seed, devices, minutes, nodes })
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
  process.stdout.write(`${failures} of ${seeds} seeds have failed\n`)
  process.exitCode = 1
}
