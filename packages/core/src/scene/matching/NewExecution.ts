/**
 * An execution about which nothing has been decided: which scene was fired, and
 * by what.
 */
import type { ProjectId } from "../../project/Project.ts"
import type { SceneId } from "../definition/SceneId.ts"
import type { SceneEvent, StatusLasted } from "./SceneEvent.ts"

export interface NewExecution {
  /** Unique in the cloud. */
  readonly executionId: string
  readonly sceneId: SceneId
  readonly projectId: ProjectId
  /** When the scene was fired, Unix milliseconds. */
  readonly at: number
  readonly event: SceneEvent
  /** The scenes whose actions led to this execution, the first one first. */
  readonly chain: ReadonlyArray<SceneId>
}

/**
 * An execution of a scene whose trigger waits for a status to last. It is stored
 * with the change of the status, and becomes due at `at` if the status has not
 * changed by then.
 */
export interface WaitingExecution extends NewExecution {
  readonly event: StatusLasted
}

/** Whether the execution waits for a status to last. */
export const isWaiting = (execution: NewExecution): execution is WaitingExecution =>
  execution.event._tag === "StatusLasted"
