/**
 * Port: where subscriptions and their progress are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { Page, PageRequest } from "../kernel/Page.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import type { Progress } from "./Shards.ts"
import type { NewSubscription, Subscription, SubscriptionChanges } from "./Subscription.ts"

export interface StoredSubscription {
  readonly subscription: Subscription
  readonly progress: Progress
}

/** A step of the progress of one subscription. */
export interface SubscriptionModification<A> {
  readonly projectId: ProjectId
  readonly subscriptionId: number
  /**
   * Returns a result and the next progress; undefined: it stays. `now` is the time of
   * the store's clock, which is one for all nodes, in Unix milliseconds. Pure: the
   * store calls it again when another writer was faster.
   */
  readonly step: (stored: StoredSubscription, now: number) => readonly [result: A, progress?: Progress | undefined]
}

/** The fields to change; what is left out stays. */
export type SubscriptionUpdate = SubscriptionChanges & Pick<Subscription, "updatedAt">

/**
 * Laws: each call is one transaction. A call that takes a project sees only the
 * subscriptions of that project. Names are unique in their project. Subscriptions
 * go with their project.
 */
export class SubscriptionStore extends Context.Service<SubscriptionStore, {
  /** Stores a subscription; `taken`: the name is. */
  readonly insert: (
    subscription: NewSubscription,
    progress: Progress
  ) => Effect.Effect<Subscription | "taken" | "no-project", StoreError>
  /** Returns the subscription with its progress; none: there is no such subscription. */
  readonly get: (
    projectId: ProjectId,
    subscriptionId: number
  ) => Effect.Effect<Option.Option<StoredSubscription>, StoreError>
  /** Returns a page of the subscriptions of the project. */
  readonly list: (projectId: ProjectId, page: PageRequest) => Effect.Effect<Page<Subscription>, StoreError>
  /** Returns subscriptions of all projects whose ids are above `after`, by id, at most `limit`. */
  readonly all: (after: number, limit: number) => Effect.Effect<ReadonlyArray<StoredSubscription>, StoreError>
  /**
   * Returns those subscriptions of the project (undefined: of all projects) that have
   * a webhook. `except`: the ids of those to leave out.
   */
  readonly pushing: (
    projectId?: ProjectId,
    except?: ReadonlyArray<number>
  ) => Effect.Effect<ReadonlyArray<StoredSubscription>, StoreError>
  /** Changes the given fields. Returns the subscription after the change; none: there is no such subscription. */
  readonly update: (
    projectId: ProjectId,
    subscriptionId: number,
    change: SubscriptionUpdate
  ) => Effect.Effect<Option.Option<Subscription> | "taken", StoreError>
  /** Removes the subscription. Returns false if there is no such subscription. */
  readonly remove: (projectId: ProjectId, subscriptionId: number) => Effect.Effect<boolean, StoreError>
  /**
   * Takes steps of subscriptions, those of one subscription one after the other, in
   * the order of the modifications. Returns their results in that order; none:
   * there is no such subscription.
   */
  readonly modify: <A>(
    modifications: ReadonlyArray<SubscriptionModification<A>>
  ) => Effect.Effect<ReadonlyArray<Option.Option<A>>, StoreError>
}>()("@device-cloud/core/subscription/SubscriptionStore") {}
