/**
 * Port: where scenes are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { Page, PageRequest } from "../../kernel/Page.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import type { ProductKey } from "../../product/Product.ts"
import type { ProjectId } from "../../project/Project.ts"
import type { Scene, SceneFilter, SceneTimer } from "./Scene.ts"
import type { SceneId } from "./SceneId.ts"

/**
 * Laws: each call is one transaction. Names are unique in a project. A scene goes
 * with its project, and its timers and executions go with the scene: this port
 * and `ExecutionStore` can only be replaced together.
 */
export class SceneStore extends Context.Service<SceneStore, {
  /**
   * Stores a new scene and its timers. `taken`: the project has another scene of
   * this name. `no-project`: there is no such project.
   */
  readonly insert: (
    scene: Scene,
    timers: ReadonlyArray<SceneTimer>
  ) => Effect.Effect<"inserted" | "taken" | "no-project", StoreError>
  /**
   * Replaces the scene whose revision is one lower, and its timers. A timer that
   * has a time before and after keeps the earlier one, which may just have come.
   * `changed`: the scene has another revision, or is gone.
   */
  readonly update: (
    scene: Scene,
    timers: ReadonlyArray<SceneTimer>
  ) => Effect.Effect<"updated" | "taken" | "changed", StoreError>
  /** Removes the scene with its timers and executions. Returns the scene as it was; none: there is no such scene. */
  readonly remove: (projectId: ProjectId, sceneId: SceneId) => Effect.Effect<Option.Option<Scene>, StoreError>
  /** Returns the scene of the project; none: the project has no such scene. */
  readonly get: (projectId: ProjectId, sceneId: SceneId) => Effect.Effect<Option.Option<Scene>, StoreError>
  /** Returns those of the scenes that exist, of any project. */
  readonly find: (sceneIds: ReadonlyArray<SceneId>) => Effect.Effect<ReadonlyArray<Scene>, StoreError>
  /** Returns a page of the scenes of the project, newest first. */
  readonly list: (
    projectId: ProjectId,
    filter: SceneFilter,
    page: PageRequest
  ) => Effect.Effect<Page<Scene>, StoreError>
  /** Returns the enabled scenes that devices of the products fire. */
  readonly watching: (productKeys: ReadonlyArray<ProductKey>) => Effect.Effect<ReadonlyArray<Scene>, StoreError>
  /** Notes until when the scene does not fire, Unix milliseconds. */
  readonly pause: (sceneId: SceneId, until: number) => Effect.Effect<void, StoreError>
}>()("@device-cloud/core/scene/definition/SceneStore") {}
