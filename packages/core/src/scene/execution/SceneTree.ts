/**
 * The tree of executions that one execution, the root, has led to through
 * `action/rule`. All of them share one budget: eight scenes that run the next one
 * fifty times would otherwise be 50⁸ executions. When one of them would go
 * beyond the budget, the tree ends: nothing more of it starts.
 */
import type { SceneLimits } from "../definition/SceneLimits.ts"

/** Which part of its budget a tree has used up. */
export type TreeEnd = "actions" | "duration"

export interface SceneTree {
  /** Of all executions in the tree. */
  readonly actions: number
  /** When the root first ran another scene, Unix milliseconds. */
  readonly startedAt: number
  /** Null: the tree may grow. */
  readonly ended: TreeEnd | null
}

/** What an execution adds to the tree by running another scene. */
export interface TreeGrowth {
  /** Unix milliseconds. */
  readonly at: number
  /** How many actions the scene has that runs the other one. They count if the tree begins. */
  readonly own: number
  /** How many actions the other scene has; 1 if it has none. */
  readonly adds: number
  readonly limits: Pick<SceneLimits, "actions" | "duration">
}

/** How long a tree is remembered after its start, milliseconds: longer than its root can take. */
export const treeKeptMillis = 86_400_000

/** Returns the tree with another execution. If it has ended, that execution must not start. Undefined: it begins. */
export const growTree = (tree: SceneTree | undefined, { adds, at, limits, own }: TreeGrowth): SceneTree => {
  const before = tree ?? { actions: own, startedAt: at, ended: null }
  const actions = before.actions + adds
  const isLate = at - before.startedAt >= limits.duration
  const ended = before.ended ?? (isLate ? "duration" : actions > limits.actions ? "actions" : null)
  return { actions, startedAt: before.startedAt, ended }
}

/** Returns a sentence that says why the tree has ended. */
export const treeEndReason = (end: TreeEnd, { actions, duration }: SceneLimits, rootId: string): string =>
  end === "actions"
    ? `The scenes that execution ${rootId} has led to have more than ${actions} actions together`
    : `Execution ${rootId} has led to other scenes for longer than ${duration / 1000} seconds`
