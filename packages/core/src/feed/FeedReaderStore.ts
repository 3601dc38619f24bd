/**
 * Port: readers of the whole feed that all nodes share, each by its name. One node
 * at a time holds a reader; where it has come to is stored.
 */
import { Context, type Effect, type Option } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import type { FeedPlace } from "./FeedStore.ts"

/** What the holder of a reader has. */
export interface HeldReader {
  /** Everything up to this place has been dealt with. */
  readonly place: FeedPlace
  /** Of this holder alone: each claim that succeeds raises it. */
  readonly epoch: number
}

/**
 * Laws:
 *
 * - Times are those of the store: the clocks of nodes do not matter.
 * - A reader has one holder at most whose lease lasts.
 * - When a reader was claimed again, its former holder can no longer change
 *   anything, whenever it goes on.
 * - A place never moves back.
 */
export class FeedReaderStore extends Context.Service<FeedReaderStore, {
  /**
   * Claims the reader for `leaseMillis` from now. None: another holder's lease
   * lasts. One that lasts longer than `leaseMillis` counts as ended: a clock that was
   * wrong gave it. A reader of a new name begins before all events.
   */
  readonly claim: (options: {
    readonly name: string
    readonly leaseMillis: number
  }) => Effect.Effect<Option.Option<HeldReader>, StoreError>
  /**
   * Stores the place and prolongs the lease until `leaseMillis` from now; a lease
   * that has ended begins again. A place that is earlier than the stored one
   * prolongs the lease only. Returns whether the reader is still this holder's.
   */
  readonly advance: (
    options: HeldReader & {
      readonly name: string
      readonly leaseMillis: number
    }
  ) => Effect.Effect<boolean, StoreError>
  /** Ends the lease, so that the reader can be claimed at once. */
  readonly release: (options: {
    readonly name: string
    readonly epoch: number
  }) => Effect.Effect<void, StoreError>
}>()("@device-cloud/core/feed/FeedReaderStore") {}
