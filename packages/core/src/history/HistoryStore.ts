/**
 * Port: where the history of devices is read. It is written with the shadow
 * (`ShadowStore`), in the same transaction.
 */
import { Context, type Effect } from "effect"
import type { DeviceId } from "../device/Device.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { EventRecord, HistoryRange, PropertySample } from "./HistoryEntry.ts"

/**
 * Laws: what has the same time comes in the order in which it was stored (or
 * the reverse of it). What is read costs the same however much is stored. The
 * history of a device that is removed goes with it.
 */
export class HistoryStore extends Context.Service<HistoryStore, {
  readonly samples: (
    deviceId: DeviceId,
    propertyId: string,
    range: HistoryRange
  ) => Effect.Effect<ReadonlyArray<PropertySample>, StoreError>
  /** Of all events, or of the one that is named. */
  readonly events: (
    deviceId: DeviceId,
    eventId: string | undefined,
    range: HistoryRange
  ) => Effect.Effect<ReadonlyArray<EventRecord>, StoreError>
  /** Forgets what was stored before `storedBefore`, Unix milliseconds, at most `limit` of each; answers how much. */
  readonly prune: (options: {
    readonly storedBefore: number
    readonly limit: number
  }) => Effect.Effect<number, StoreError>
}>()("@device-cloud/core/history/HistoryStore") {}
