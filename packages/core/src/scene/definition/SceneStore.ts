/**
 * Port: where scenes, their timers and their executions are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { Page, PageRequest } from "../../kernel/Page.ts"
import type { ProductKey } from "../../product/Product.ts"
import type { ProjectId } from "../../project/Project.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import type { Execution, NewExecution } from "../execution/Execution.ts"
import type { Scene, SceneFilter, SceneId, SceneTimer } from "./Scene.ts"
import type { WebhookKeys } from "../execution/Webhook.ts"

/** What to make of a timer whose time has come. */
export interface TimerStep {
  /** Its next time, Unix milliseconds; null: never. */
  readonly dueAt: number | null
  /** Absent: its time was missed. */
  readonly execution?: NewExecution
}

/**
 * Laws: each call is one transaction. Names are unique in a project. An
 * execution is stored only while its scene exists, once for its id, and goes
 * with the scene. A scene goes with its project.
 */
export class SceneStore extends Context.Service<SceneStore, {
  readonly insert: (
    scene: Scene,
    timers: ReadonlyArray<SceneTimer>
  ) => Effect.Effect<"inserted" | "taken" | "no-project", StoreError>
  /**
   * Replaces the scene whose revision is one lower, and its timers: one that was
   * waiting and still has a time keeps that which it was waiting for, which may
   * just have come. `changed`: the scene has another revision, or is gone.
   */
  readonly update: (
    scene: Scene,
    timers: ReadonlyArray<SceneTimer>
  ) => Effect.Effect<"updated" | "taken" | "changed", StoreError>
  /** The scene as it was; none when there is no such scene. */
  readonly remove: (projectId: ProjectId, sceneId: SceneId) => Effect.Effect<Option.Option<Scene>, StoreError>
  readonly get: (projectId: ProjectId, sceneId: SceneId) => Effect.Effect<Option.Option<Scene>, StoreError>
  /** Those that exist, of whatever project. */
  readonly find: (sceneIds: ReadonlyArray<SceneId>) => Effect.Effect<ReadonlyArray<Scene>, StoreError>
  readonly list: (
    projectId: ProjectId,
    filter: SceneFilter,
    page: PageRequest
  ) => Effect.Effect<Page<Scene>, StoreError>
  /** The enabled scenes that devices of the products fire. */
  readonly watching: (productKeys: ReadonlyArray<ProductKey>) => Effect.Effect<ReadonlyArray<Scene>, StoreError>
  /** Until when the scene does not fire, Unix milliseconds. */
  readonly pause: (sceneId: SceneId, until: number) => Effect.Effect<void, StoreError>

  /** Due at once. */
  readonly enqueue: (executions: ReadonlyArray<NewExecution>) => Effect.Effect<void, StoreError>
  /**
   * Executions that are due at `now`, the longest due first, at most `limit`, of
   * no project of `except`; they are due again at `again` unless they are saved.
   * No two callers get the same.
   */
  readonly claim: (options: {
    readonly now: number
    readonly again: number
    readonly limit: number
    readonly except: ReadonlyArray<ProjectId>
  }) => Effect.Effect<ReadonlyArray<Execution>, StoreError>
  /**
   * In the order of the executions, whether each was stored: only those that
   * still have the revision with which they were claimed are. Of those that have
   * ended, the latest `keptExecutions` of each scene stay, and those that have
   * fired since `keepSince` (Unix milliseconds).
   */
  readonly save: (
    executions: ReadonlyArray<Execution>,
    keepSince: number
  ) => Effect.Effect<ReadonlyArray<boolean>, StoreError>
  /** How many executions of each scene have fired since then (Unix milliseconds). */
  readonly countFired: (
    sceneIds: ReadonlyArray<SceneId>,
    since: number
  ) => Effect.Effect<ReadonlyMap<SceneId, number>, StoreError>
  /** The latest `keptExecutions`, newest first. */
  readonly executions: (sceneId: SceneId, page: PageRequest) => Effect.Effect<Page<Execution>, StoreError>

  /**
   * Timers that are due at `now`, at most `limit`, each set to its next time
   * with its execution stored. No two callers get the same. Answers how many.
   */
  readonly tick: (options: {
    readonly now: number
    readonly limit: number
    readonly step: (timer: SceneTimer & { readonly dueAt: number }) => TimerStep
  }) => Effect.Effect<number, StoreError>

  /** None: the project has none yet. */
  readonly webhookKeys: (projectId: ProjectId) => Effect.Effect<Option.Option<WebhookKeys>, StoreError>
  /** Stores the keys, if those that are there are still of this time; null: if there are none. */
  readonly putWebhookKeys: (
    projectId: ProjectId,
    before: number | null,
    keys: WebhookKeys
  ) => Effect.Effect<boolean, StoreError>
}>()("@device-cloud/core/scene/definition/SceneStore") {}
