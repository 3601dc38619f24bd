/**
 * How much the scenes of a project may do (docs/decisions/0051-budgets-of-scenes.md).
 */
import { Context } from "effect"

/** How many scenes may run each other in a row. */
export const maxChain = 8

/** How many executions may wait for one change of a device's status to last: each is a row that is written with it. */
export const maxWaiting = 20

export interface SceneLimits {
  /**
   * How many actions an execution may have together with all executions that it
   * leads to through `action/rule`.
   */
  readonly actions: number
  /** How long after it has first run another scene an execution may lead to more, milliseconds. */
  readonly duration: number
  /** How many executions of one project may wait or be carried out. Each node looks at it by itself. */
  readonly pending: number
}

/** Provide another value with `Layer.succeed(SceneLimits, { … })`. */
export const SceneLimits = Context.Reference<SceneLimits>("@device-cloud/core/scene/definition/SceneLimits", {
  defaultValue: () => ({ actions: 500, duration: 600_000, pending: 10_000 })
})
