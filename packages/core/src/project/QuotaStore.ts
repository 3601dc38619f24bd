/**
 * Port: where quotas are kept, and what projects have of them.
 */
import { Context, type Effect, type Option } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "./Project.ts"
import type { QuotaChange, QuotaExceeded, QuotaLimits, QuotaName } from "./Quota.ts"

/** What a project has, and the limits of its own. */
export interface QuotaState {
  readonly limits: Partial<QuotaLimits>
  readonly used: Readonly<Record<QuotaName, number>>
}

/**
 * Laws: each call is one transaction. The counts of products, devices, groups, access
 * keys, scenes, jobs and subscriptions are those of the stores, whichever method
 * changes them; only bytes of objects are counted by `take`. All that belongs to a
 * project goes with it.
 */
export class QuotaStore extends Context.Service<QuotaStore, {
  /** Returns what the project has; none: there is no such project. */
  readonly state: (projectId: ProjectId) => Effect.Effect<Option.Option<QuotaState>, StoreError>
  /** Sets and, where null, removes limits of the project. Returns false if there is no such project. */
  readonly set: (projectId: ProjectId, change: QuotaChange) => Effect.Effect<boolean, StoreError>
  /**
   * Runs a write that adds `amount`, 1 or more, to what the project has. Fails with
   * `QuotaExceeded`, and undoes the write, if the project then has more than its
   * own limit or else `limit`. Writes at the same time, also on other nodes, are
   * never admitted together beyond the limit.
   */
  readonly within: <A, E, R>(
    options: {
      readonly projectId: ProjectId
      readonly quota: Exclude<QuotaName, "objectBytes">
      readonly amount: number
      readonly limit: number
    },
    write: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | QuotaExceeded | StoreError, R>
  /**
   * Adds bytes of an object, negative ones for an object that is gone; the count
   * does not go below 0. Fails with `QuotaExceeded`, and adds nothing, if the
   * project would have more bytes than its own limit or else `limit`.
   */
  readonly take: (projectId: ProjectId, bytes: number, limit: number) => Effect.Effect<void, QuotaExceeded | StoreError>
  /**
   * Counts a registration with the secret of a product in a minute (Unix
   * milliseconds / 60,000). Returns the limit, and counts nothing, if the product
   * has had as many in this minute as the project's own limit or else `limit`
   * admits. Returns none if it is counted, or the product is gone. What comes a
   * minute late counts as of the minute that has begun (`currentMinute`).
   */
  readonly register: (
    projectId: ProjectId,
    productKey: string,
    minute: number,
    limit: number
  ) => Effect.Effect<Option.Option<number>, StoreError>
}>()("@device-cloud/core/project/QuotaStore") {}

/**
 * The minute that a registration counts in. The clocks of nodes differ a little: a
 * minute that is over counts as the one that has begun. A `last` that is further
 * ahead comes from a clock that was wrong.
 */
export const currentMinute = (last: number, minute: number): number => last === minute + 1 ? last : minute
