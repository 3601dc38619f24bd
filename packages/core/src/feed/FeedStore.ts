/**
 * Port: the feed, a log of all domain events. What causes an event and the event
 * are stored in one transaction (docs/decisions/0078-one-log.md).
 */
import { Context, type Effect } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { DomainEvent } from "../events/DomainEvent.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProductKey } from "../product/Product.ts"
import type { ProjectId } from "../project/Project.ts"

/**
 * A place in the feed: after one event, before the next. It is also the id of the
 * event before it. Places compare as text: the later one is the greater.
 */
export type FeedPlace = string

/** The place before all events. */
export const feedStart: FeedPlace = ""

/** An event with its place. */
export interface FeedEntry {
  readonly id: FeedPlace
  readonly event: DomainEvent
}

/** Which events a read returns: those that fulfil every member. A member that is left out admits all. */
export interface FeedSelection {
  readonly projectIds?: ReadonlyArray<ProjectId> | undefined
  readonly kinds?: ReadonlyArray<DomainEvent["_tag"]> | undefined
  readonly productKeys?: ReadonlyArray<ProductKey> | undefined
  readonly deviceIds?: ReadonlyArray<DeviceId> | undefined
}

export interface FeedRead {
  /** Undefined: all projects. */
  readonly projectId: ProjectId | undefined
  /** A text that is no place (`isFeedPlace`) is a failure that cannot pass. */
  readonly after: FeedPlace
  /** The most entries to return, 1 to 10,000. */
  readonly limit: number
  readonly select?: FeedSelection | undefined
}

/** The kinds of events that tell of the presence of a device. */
export const presenceKinds = ["DeviceStatusChanged", "ConnectionReplaced"] as const satisfies ReadonlyArray<
  DomainEvent["_tag"]
>

/** An event that tells of the presence of a device, with its place. */
export interface PresenceEntry extends FeedEntry {
  readonly event: DomainEvent & { readonly _tag: (typeof presenceKinds)[number] }
}

export interface FeedPage {
  /** In the order of the feed. */
  readonly entries: ReadonlyArray<FeedEntry>
  /** Where to read on. It may be after the last entry: what lies between is not selected. */
  readonly next: FeedPlace
  /** Whether there may be more after `next` now. */
  readonly hasMore: boolean
  /** Whether the page ends before `limit` because its events are large; absent: it does not. */
  readonly isCut?: boolean
  /**
   * Events after `after` are no longer kept, or `after` is a place of another feed.
   * Never true for the start of the feed.
   */
  readonly isGap: boolean
}

/**
 * Laws:
 *
 * - The order of the feed never changes: an event that becomes visible is after
 *   everything that a reader of its project could see before, whenever its
 *   transaction began. A reader that goes on from `next` misses nothing.
 * - Events of one device are in the order in which they were stored.
 * - A read costs the same wherever it begins, and is bounded however few events
 *   it selects, and however large they are.
 * - What a device has reported is part of its history, whoever records it.
 * - Events of a device that was deleted stay, with the device's names.
 */
export class FeedStore extends Context.Service<FeedStore, {
  /** Records events, all or none, in the surrounding transaction if there is one. */
  readonly append: (events: ReadonlyArray<DomainEvent>) => Effect.Effect<void, StoreError>
  /**
   * Runs `write` and records the events that `eventsOf` makes of its result, in one
   * transaction: if either fails, neither has had an effect. This holds for writes
   * of stores that share the database of this store.
   */
  readonly commit: <A, E, R>(
    write: Effect.Effect<A, E, R>,
    eventsOf: (result: A) => ReadonlyArray<DomainEvent>
  ) => Effect.Effect<A, E | StoreError, R>
  readonly read: (options: FeedRead) => Effect.Effect<FeedPage, StoreError>
  /**
   * Returns at most `limit` events of {@link presenceKinds} of the device, the latest
   * first. `before`: a place; only events before it.
   */
  readonly presenceOf: (
    deviceId: DeviceId,
    page: { readonly before?: FeedPlace | undefined; readonly limit: number }
  ) => Effect.Effect<ReadonlyArray<PresenceEntry>, StoreError>
  /** The place after all events that are visible now. */
  readonly end: Effect.Effect<FeedPlace, StoreError>
  /** A place after which come all events that were recorded at `time` (Unix milliseconds) or later. */
  readonly placeAt: (time: number) => Effect.Effect<FeedPlace, StoreError>
  /**
   * Forgets the oldest events: those older than `keepMillis`, and more until at most
   * `maxBytes` are stored. It forgets whole parts, so some older events may stay;
   * so do those that the history of the same storage has not taken over yet.
   */
  readonly prune: (options: {
    readonly keepMillis: number
    readonly maxBytes: number
    /** Whether another store keeps the history (`HistoryStandsApart`). */
    readonly isHistoryApart: boolean
  }) => Effect.Effect<void, StoreError>
}>()("@device-cloud/core/feed/FeedStore") {}
