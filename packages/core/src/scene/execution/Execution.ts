/**
 * Executions of scenes: what has fired one, what it found, and what became of
 * its actions. A pending one is also what waits to be carried out.
 */
import type { Reaction } from "../../events/Reactions.ts"
import type { ProjectId } from "../../project/Project.ts"
import type { Action, SceneId } from "../definition/Scene.ts"
import type { Verdict } from "../evaluation/SceneEvaluator.ts"
import type { SceneEvent } from "../matching/SceneEvent.ts"

/**
 * `pending`: nothing has been decided; `running`: actions are left to do. The
 * others are final: `not_met`: a condition did not hold, or no trigger any more;
 * `skipped`: the scene had been disabled; `paused`: it had run too often; `loop`:
 * an action would have run a scene in a circle or too deep; `failed`: an action
 * has failed.
 */
export type ExecutionStatus =
  | "pending"
  | "running"
  | "succeeded"
  | "failed"
  | "loop"
  | "not_met"
  | "skipped"
  | "paused"

/** What became of an action. */
export interface ActionOutcome {
  readonly action: Action
  /** `skipped`: what it is about is gone or disabled. The last four are final. */
  readonly status: "pending" | "succeeded" | "failed" | "skipped" | "loop"
  /** How often it was tried. */
  readonly attempts: number
  /** When it is tried again, Unix milliseconds; null: not. */
  readonly nextAt: number | null
  /** The latest attempt, Unix milliseconds; null: none yet. */
  readonly at: number | null
  /** A sentence about the latest attempt. */
  readonly detail: string
}

export interface Execution {
  /** Unique in the cloud. */
  readonly executionId: string
  readonly sceneId: SceneId
  readonly projectId: ProjectId
  /** When the scene was fired, Unix milliseconds. */
  readonly at: number
  readonly event: SceneEvent
  /** The scenes that led here by their actions, the first one first. */
  readonly chain: ReadonlyArray<SceneId>
  readonly status: ExecutionStatus
  /** A sentence about the status. */
  readonly reason: string
  /** Null: nothing was decided. */
  readonly verdict: Verdict | null
  readonly outcomes: ReadonlyArray<ActionOutcome>
  /** When there is something to do, Unix milliseconds; null: nothing any more. */
  readonly dueAt: number | null
  /** Grows each time it is claimed: of several that claim it, only the last may write. */
  readonly revision: number
  /** The latest change, Unix milliseconds. */
  readonly updatedAt: number
}

/** An execution that nothing has been decided about. */
export type NewExecution = Pick<Execution, "executionId" | "sceneId" | "projectId" | "at" | "event" | "chain">

/** Reactions to changes of devices are executions of scenes. */
export const executionsOf = (reactions: ReadonlyArray<Reaction>): ReadonlyArray<NewExecution> =>
  reactions as ReadonlyArray<NewExecution>

/**
 * When an execution that was claimed is due again, unless it was saved;
 * milliseconds. Longer than any action takes.
 */
export const leaseMillis = 90_000

/** Executions of each scene that are kept after they have ended. */
export const keptExecutions = 100

export const pendingExecution = (fired: NewExecution): Execution => ({
  status: "pending",
  reason: "",
  verdict: null,
  outcomes: [],
  dueAt: fired.at,
  revision: 0,
  updatedAt: fired.at,
  ...fired
})

/** Scenes that may lead to each other by their actions, one after the other. */
export const maxChain = 8

/** Whether the execution is one of those that have run actions. */
export const hasFired = ({ verdict }: Pick<Execution, "verdict">): boolean => verdict?.fires === true

/** The status that the outcomes of all actions imply. */
export const statusOf = (outcomes: ReadonlyArray<ActionOutcome>): ExecutionStatus => {
  const has = (status: ActionOutcome["status"]) => outcomes.some((outcome) => outcome.status === status)
  if (has("pending")) return "running"
  if (has("loop")) return "loop"
  return has("failed") ? "failed" : "succeeded"
}
