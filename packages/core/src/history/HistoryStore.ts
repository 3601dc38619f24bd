/**
 * Port: where the history of devices is stored.
 */
import { Context, type Effect, type Stream } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { HistoryBucket, HistoryIntervals } from "./Aggregate.ts"
import type { EventRecord, HistoryRange, PropertySample } from "./HistoryEntry.ts"

/** What is added to the history of one device, in this order. */
export interface HistoryAddition {
  readonly deviceId: DeviceId
  readonly samples: ReadonlyArray<PropertySample>
  readonly events: ReadonlyArray<EventRecord>
}

/** A part of a device's history that is read as a whole. */
export interface HistoryScan {
  /** Unix milliseconds, inclusive. */
  readonly start: number
  /** Unix milliseconds, inclusive. */
  readonly end: number
  /** Undefined: all properties. */
  readonly propertyIds: ReadonlyArray<string> | undefined
}

/**
 * Whether the history stands apart from the other stores, as `HistoryApart` and
 * `HistoryFromFeed` say.
 * The history of a deleted device is then removed through `HistoryStore`.
 */
export const HistoryStandsApart = Context.Reference<boolean>("@device-cloud/core/history/HistoryStandsApart", {
  defaultValue: () => false
})

/**
 * Whether a history that stands apart is fed from the feed, as `HistoryFromFeed`
 * says. It then learns of deletions there.
 */
export const HistoryFollowsFeed = Context.Reference<boolean>("@device-cloud/core/history/HistoryFollowsFeed", {
  defaultValue: () => false
})

/**
 * Laws:
 *
 * - Entries of one property, or of one event id, with the same time come in the
 *   order in which they were stored, or its reverse. Events of several ids with
 *   the same time come in any order.
 * - A read costs the same however much is stored.
 * - The store needs to know no device: it takes entries of any, and returns
 *   none for a device that it has no entries of.
 *
 * A storage adapter writes most history in `UplinkStore.commit`, in the
 * transaction of the shadow, and deletes it with the device. `append` and
 * `remove` are for a store that stands apart from the other stores
 * (`HistoryApart`, `HistoryFromFeed`).
 */
export class HistoryStore extends Context.Service<HistoryStore, {
  /** The values of one property. */
  readonly samples: (
    deviceId: DeviceId,
    propertyId: string,
    range: HistoryRange
  ) => Effect.Effect<ReadonlyArray<PropertySample>, StoreError>
  /** The events with this id, or all events if it is undefined. */
  readonly events: (
    deviceId: DeviceId,
    eventId: string | undefined,
    range: HistoryRange
  ) => Effect.Effect<ReadonlyArray<EventRecord>, StoreError>
  /** The numeric values of one property by intervals, by time; intervals without one are left out. */
  readonly aggregate: (
    deviceId: DeviceId,
    propertyId: string,
    intervals: HistoryIntervals
  ) => Effect.Effect<ReadonlyArray<HistoryBucket>, StoreError>
  /**
   * All values of a range in chunks, those of each property by time. The memory
   * that it takes does not grow with what it reads.
   */
  readonly scan: (deviceId: DeviceId, scan: HistoryScan) => Stream.Stream<ReadonlyArray<PropertySample>, StoreError>
  /**
   * Those of the devices that have values of any property in the range, in any
   * order. A device is not among them if all its values are before the range, or
   * all after it; it may be if they are around it. A device without values costs
   * next to nothing: an export asks for each device of its product, and most may be
   * merely stored.
   */
  readonly devicesWithin: (
    deviceIds: ReadonlyArray<DeviceId>,
    range: Pick<HistoryRange, "start" | "end">
  ) => Effect.Effect<ReadonlyArray<DeviceId>, StoreError>
  /**
   * Stores all entries or none. An entry that an earlier call stored is left
   * out, so that a call whose outcome is unknown can be repeated: it has the same
   * device, property or event, time and value. Equal entries of one call are all
   * stored.
   */
  readonly append: (additions: ReadonlyArray<HistoryAddition>) => Effect.Effect<void, StoreError>
  /** Forgets all entries of these devices. */
  readonly remove: (deviceIds: ReadonlyArray<DeviceId>) => Effect.Effect<void, StoreError>
  /**
   * Forgets entries whose time is more than `keepDays` days ago; such an entry may
   * also be left out when it comes in. The store forgets whole parts, so entries
   * that are older by a twelfth of `keepDays`, or by a day, may stay. What was
   * stored while another number held may go by that number.
   */
  readonly prune: (options: {
    /** For devices whose product has no days of its own. 0: for ever. */
    readonly keepDays: number
  }) => Effect.Effect<void, StoreError>
  /**
   * Does what the store puts off so that writes are quick, if it is due. `History`
   * calls it once a minute on every node.
   */
  readonly maintain: Effect.Effect<void, StoreError>
}>()("@device-cloud/core/history/HistoryStore") {}
