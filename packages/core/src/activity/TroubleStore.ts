/**
 * Port: what has gone wrong lately in projects, by device and scene.
 */
import { Context, type Effect } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"

/**
 * What goes wrong. `flapping`: a device changes its status again and again. `refused`:
 * messages of a device are refused. `execution-failed`: executions of a scene fail.
 */
export type TroubleKind = "flapping" | "refused" | "execution-failed"

/** How long after the latest time trouble counts as over, milliseconds. */
export const troubleMillis = 3_600_000

/** Something that goes wrong with a device or a scene. */
export interface Trouble {
  readonly projectId: ProjectId
  readonly kind: TroubleKind
  /** The id of the device or scene. It may be gone. */
  readonly subject: string
  /** How often. */
  readonly times: number
  /** What happened the latest time: a code, or the status of an execution. */
  readonly detail: string
  /** The first and the latest time, Unix milliseconds. */
  readonly since: number
  readonly at: number
}

/** Laws: each call is one transaction. Troubles of a project go with it. */
export class TroubleStore extends Context.Service<TroubleStore, {
  /**
   * Adds troubles to those that are there: `times` add up, `since` is the earliest, `at`
   * the latest with its `detail`. Trouble that was over before counts anew. Troubles of
   * projects that do not exist are dropped. Each one is there once in a call.
   */
  readonly note: (troubles: ReadonlyArray<Trouble>) => Effect.Effect<void, StoreError>
  /** Returns troubles of the project since then (Unix milliseconds): of each kind those with the most times, at most `limit`; of as many times, the latest first. */
  readonly latest: (
    projectId: ProjectId,
    since: number,
    limit: number
  ) => Effect.Effect<ReadonlyArray<Trouble>, StoreError>
  /** Removes troubles whose latest time is before `before`, Unix milliseconds, at most `limit`. Returns how many. */
  readonly prune: (options: { readonly before: number; readonly limit: number }) => Effect.Effect<number, StoreError>
}>()("@device-cloud/core/activity/TroubleStore") {}
