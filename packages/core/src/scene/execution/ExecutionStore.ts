/**
 * Port: where the executions of scenes are kept, and the timers that fire scenes.
 */
import { Context, type Effect } from "effect"
import type { Page, PageRequest } from "../../kernel/Page.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import type { ProjectId } from "../../project/Project.ts"
import type { SceneTimer } from "../definition/Scene.ts"
import type { SceneId } from "../definition/SceneId.ts"
import type { NewExecution } from "../matching/NewExecution.ts"
import type { Execution } from "./Execution.ts"
import type { TreeEnd, TreeGrowth } from "./SceneTree.ts"

/** What becomes of a timer whose time has come. */
export interface TimerStep {
  /** Its next time, Unix milliseconds; null: never. */
  readonly dueAt: number | null
  /** Absent: the time was missed, or too many executions of the project wait. */
  readonly execution?: NewExecution
}

/**
 * Laws: each call is one transaction. Of one scene, device and number of minutes
 * at most one execution waits for a status to last: the latest. An execution is stored only while its scene
 * exists, at most once for its id, and goes with the scene: this port and
 * `SceneStore` can only be replaced together.
 */
export class ExecutionStore extends Context.Service<ExecutionStore, {
  /** Stores executions that no other execution has started. They are due at once. */
  readonly enqueue: (executions: ReadonlyArray<NewExecution>) => Effect.Effect<void, StoreError>
  /**
   * Stores an execution that another one starts, due at once, unless the tree of
   * the root ends with it or has ended (`growTree`). Returns why it has ended;
   * null: the execution is stored, now or before, and counted once. Trees are
   * forgotten `treeKeptMillis` after their start.
   */
  readonly enqueueChild: (
    execution: NewExecution,
    rootId: string,
    growth: TreeGrowth
  ) => Effect.Effect<TreeEnd | null, StoreError>
  /** Returns those of the trees that have ended, by root. */
  readonly endedTrees: (rootIds: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, TreeEnd>, StoreError>
  /** Counts the executions of each project that have not ended, up to `limit`. Leaves out projects without any. */
  readonly countPending: (
    projectIds: ReadonlyArray<ProjectId>,
    limit: number
  ) => Effect.Effect<ReadonlyMap<ProjectId, number>, StoreError>
  /**
   * Stores entries of the log about what was not carried out. Each becomes the
   * newest of its scene, in place of an earlier one of its id.
   */
  readonly note: (executions: ReadonlyArray<Execution>) => Effect.Effect<void, StoreError>
  /**
   * Returns executions that are due at `now`, at most `limit` of them and none of
   * the projects in `except`. Projects share: none gets more than `limit` divided
   * by the number of projects that have some, rounded up, and of each one the
   * longest due come first. So fewer than `limit` of a single project are all
   * that are due; after fewer of several projects, there may be more. Unless they
   * are saved, they are due again at `again`. No two callers get the same one.
   */
  readonly claim: (options: {
    readonly now: number
    readonly again: number
    readonly limit: number
    readonly except: ReadonlyArray<ProjectId>
  }) => Effect.Effect<ReadonlyArray<Execution>, StoreError>
  /**
   * Stores each execution that still has the revision with which it was claimed.
   * Returns, in the order of the executions, which ones it stored. Of those that
   * have ended, the latest `keptExecutions` of each scene stay, and those that
   * have fired since `keepSince` (Unix milliseconds).
   */
  readonly save: (
    executions: ReadonlyArray<Execution>,
    keepSince: number
  ) => Effect.Effect<ReadonlyArray<boolean>, StoreError>
  /** Counts the executions of each scene that have fired from `since` to `until`, Unix milliseconds, both included. */
  readonly countFired: (
    sceneIds: ReadonlyArray<SceneId>,
    since: number,
    until: number
  ) => Effect.Effect<ReadonlyMap<SceneId, number>, StoreError>
  /** Returns a page of the latest `keptExecutions` of the scene, newest first. */
  readonly executions: (sceneId: SceneId, page: PageRequest) => Effect.Effect<Page<Execution>, StoreError>
  /**
   * Takes timers that are due at `now`, at most `limit` of them, the longest due
   * first. Sets each one to its next time and stores its execution. No two callers
   * get the same timer. Returns how many it took.
   */
  readonly tick: (options: {
    readonly now: number
    readonly limit: number
    readonly step: (timer: SceneTimer & { readonly dueAt: number }) => TimerStep
  }) => Effect.Effect<number, StoreError>
  /**
   * Looks at timers that have a time, in the order of their ids, `limit` of them
   * after the id `after`. Those for which `step` returns an earlier time get it,
   * unless they are taken meanwhile. Returns the id of the last one; undefined: there
   * are no more.
   */
  readonly hasten: (options: {
    readonly after: string
    readonly limit: number
    readonly step: (timer: SceneTimer & { readonly dueAt: number }) => number | null
  }) => Effect.Effect<string | undefined, StoreError>
  /**
   * Takes executions that have waited for a status to last and are due at `now`,
   * at most `limit` of them. Stores those that `admit` accepts of the enabled
   * devices that have the status, and had it all the time. No two callers get the
   * same one. Returns how many it took.
   */
  readonly tickLasting: (options: {
    readonly now: number
    readonly limit: number
    readonly admit: (execution: NewExecution) => boolean
  }) => Effect.Effect<number, StoreError>
  /**
   * Removes executions that ended before `before`, Unix milliseconds, at most
   * `limit`. Returns how many.
   */
  readonly prune: (options: { readonly before: number; readonly limit: number }) => Effect.Effect<number, StoreError>
}>()("@device-cloud/core/scene/execution/ExecutionStore") {}
