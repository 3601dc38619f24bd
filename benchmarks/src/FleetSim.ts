/**
 * `fleet-sim`: a day of 10,000 simulated devices on three nodes, held against a minute
 * (docs/simulation.md).
 */
import { Plan, run } from "@device-cloud/testing/simulation"
import { type Part, within } from "./Comparison.ts"

const devices = 10_000
const minutes = 1440
/** Seconds. */
const limit = 60

const day: Part = async () => {
  const plan = Plan.make({ seed: 7, devices, minutes })
  const from = performance.now()
  const { violations } = run(plan)
  const seconds = Math.round((performance.now() - from) / 1000)
  if (violations.length > 0) throw new Error(violations.map(({ message }) => message).join("\n"))
  return [
    within({ benchmark: "fleet-sim", scenario: "10,000 devices, 24 h, seconds", unit: "s", limit, values: [seconds] })
  ]
}

export const fleetSim: ReadonlyArray<Part> = [day]
