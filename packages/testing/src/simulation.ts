/**
 * Whole fleets in virtual time: what happens to them in a day, in minutes,
 * the same for the same seed (docs/simulation.md).
 *
 * ```ts
 * const plan = Plan.make({ seed: 7, devices: 30, minutes: 20 })
 * const outcome = run(plan)
 * if (outcome.violations.length > 0) console.log(testOf(shrink(plan, outcome)))
 * ```
 */
export type { StoreChange } from "./simulation/Cluster.ts"
export * as Plan from "./simulation/Plan.ts"
export { shrink, type Shrunk, testOf } from "./simulation/Shrinking.ts"
export { type Outcome, run, type RunOptions } from "./simulation/Simulation.ts"
export type { Violation } from "./simulation/Witness.ts"
