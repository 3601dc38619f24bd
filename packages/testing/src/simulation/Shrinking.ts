/**
 * Makes a failing plan small: leaves out devices, steps and faults, and ends earlier,
 * for as long as the same invariant is violated (delta debugging).
 */
import type { Plan } from "./Plan.ts"
import { type Outcome, run, type RunOptions } from "./Simulation.ts"

export interface Shrunk {
  /** The smallest plan that was found. */
  readonly plan: Plan
  /** What came of it. */
  readonly outcome: Outcome
  /** How many plans were run. */
  readonly runs: number
}

/** Runs that a plan is worth. */
const maxRuns = 300

/** How early a plan may end, as parts of its time: the sooner, the better. */
const ends = [0.25, 0.5, 0.75, 0.9]

/**
 * Returns the smallest plan that still violates the first invariant that `plan` has
 * violated. `outcome`: what came of the plan; it has a violation. Runs the plan up to
 * 300 times.
 */
export const shrink = (plan: Plan, outcome: Outcome, options: RunOptions = {}): Shrunk => {
  const invariant = outcome.violations[0]!.invariant
  let smallest = { plan, outcome }
  let runs = 0

  /** Takes the plan if it still fails. */
  const attempt = (candidate: Plan): boolean => {
    if (runs >= maxRuns) return false
    runs++
    const outcome = run(candidate, options)
    if (!outcome.violations.some((violation) => violation.invariant === invariant)) return false
    smallest = { plan: candidate, outcome }
    return true
  }

  const shorten = (): boolean =>
    ends.some((part) => {
      const minutes = Math.max(1, Math.floor(smallest.plan.minutes * part))
      if (minutes === smallest.plan.minutes) return false
      const isBefore = ({ at }: { readonly at: number }) => at <= minutes * 60
      return attempt({
        ...smallest.plan,
        minutes,
        steps: smallest.plan.steps.filter(isBefore),
        faults: smallest.plan.faults.filter(isBefore)
      })
    })

  /** Leaves out parts of a list: halves, then quarters, down to single items. */
  const reduce = (list: "devices" | "steps" | "faults"): boolean => {
    let hasReduced = false
    let size = Math.ceil(smallest.plan[list].length / 2)
    while (size > 0) {
      for (let start = 0; start < smallest.plan[list].length;) {
        const items = smallest.plan[list] as ReadonlyArray<unknown>
        const left = items.toSpliced(start, size)
        if (list === "devices" && left.length === 0) break
        if (attempt({ ...smallest.plan, [list]: left })) hasReduced = true
        else start += size
      }
      size = size === 1 ? 0 : Math.ceil(size / 2)
    }
    return hasReduced
  }

  /** The fewer causes are left, the better. */
  const calm = (): void => {
    attempt(withoutIdleParts(smallest.plan))
    attempt({ ...smallest.plan, bus: { lost: 0, doubled: 0, latest: 0 } })
    attempt({ ...smallest.plan, slowness: 0 })
    while (smallest.plan.nodes > 1 && attempt(withoutLastNode(smallest.plan))) continue
  }

  while ([shorten(), reduce("faults"), reduce("steps"), reduce("devices")].includes(true)) continue
  calm()
  return { ...smallest, runs }
}

const withoutLastNode = (plan: Plan): Plan => ({
  ...plan,
  nodes: plan.nodes - 1,
  faults: plan.faults.filter((fault) => !("node" in fault) || fault.node < plan.nodes - 1)
})

/** Leaves out what is about devices that are not there. */
const withoutIdleParts = (plan: Plan): Plan => {
  const ids = new Set(plan.devices.map(({ id }) => id))
  const isThere = (part: object) => !("device" in part) || ids.has(part.device as number)
  return { ...plan, steps: plan.steps.filter(isThere), faults: plan.faults.filter(isThere) }
}

/** Writes a list with an item on each line. */
const linesOf = (items: ReadonlyArray<object>): string =>
  items.length === 0 ? "[]" : `[\n${items.map((item) => `      ${literalOf(item)}`).join(",\n")}\n    ]`

const literalOf = (value: object): string =>
  JSON.stringify(value).replace(/"(\w+)":/g, "$1: ").replaceAll(",", ", ").replace(/^\{(.*)\}$/, "{ $1 }")

/** Writes the plan as a Vitest test that runs it. */
export const testOf = ({ outcome, plan }: Pick<Shrunk, "plan" | "outcome">): string => {
  const { bus, devices, faults, look, minutes, nodes, seed, slowness, steps, sweep } = plan
  const found = outcome.violations.slice(0, 3).map(({ at, invariant, message }) =>
    `  // ${new Date(at).toISOString()} ${invariant}: ${message.replaceAll("\n", " ")}`
  )
  return `import { run } from "@device-cloud/testing/simulation"
import { expect, it } from "vitest"

it("holds what seed ${seed} has broken", () => {
${found.join("\n")}
  const plan = {
    seed: ${seed},
    minutes: ${minutes},
    nodes: ${nodes},
    slowness: ${slowness},
    look: ${look},
    sweep: ${sweep},
    bus: ${literalOf(bus)},
    devices: ${linesOf(devices)},
    steps: ${linesOf(steps)},
    faults: ${linesOf(faults)}
  } as const
  expect(run(plan).violations).toEqual([])
})
`
}
