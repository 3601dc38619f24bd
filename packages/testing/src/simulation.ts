/**
 * Whole fleets in virtual time: what happens in a day of 10,000 devices, in a minute,
 * the same for the same seed (docs/simulation.md).
 */
export type { StoreChange } from "./simulation/Cluster.ts"
export * as Plan from "./simulation/Plan.ts"
export { type Outcome, run, type RunOptions } from "./simulation/Simulation.ts"
export type { Violation } from "./simulation/Witness.ts"
