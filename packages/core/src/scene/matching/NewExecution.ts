/**
 * An execution about which nothing has been decided: which scene was fired, and
 * by what.
 */
import type { ProjectId } from "../../project/Project.ts"
import type { SceneId } from "../definition/SceneId.ts"
import type { SceneEvent } from "./SceneEvent.ts"

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
