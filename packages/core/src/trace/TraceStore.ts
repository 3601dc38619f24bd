/**
 * Port: which devices are traced, and what their traces say.
 */
import { Context, type Effect, type Option } from "effect"
import type { DeviceId, DeviceIdentity } from "../device/Device.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import type { TraceEntry } from "./TraceEntry.ts"

/** A device that is traced. */
export interface TracedDevice extends Pick<DeviceIdentity, "deviceId" | "productKey" | "deviceName"> {
  /** Unix milliseconds. */
  readonly until: number
}

/** What a node has noted of one device. */
export interface NotedEntries {
  readonly deviceId: DeviceId
  readonly entries: ReadonlyArray<TraceEntry>
  /** How many more there were, for which the node had no room. */
  readonly dropped: number
}

/** An entry with its number, a positive integer: later ones of the device have larger numbers, also in a later trace. */
export interface PlacedEntry {
  readonly seq: number
  readonly entry: TraceEntry
}

/** A part of a trace. */
export interface TracePart {
  /** When the trace ends or has ended, Unix milliseconds. */
  readonly until: number
  /** Entries that nodes had no room for, since the trace began. */
  readonly dropped: number
  /** The oldest first. */
  readonly entries: ReadonlyArray<PlacedEntry>
}

/**
 * Laws: each call is one transaction. Whoever has read the entries up to a number finds
 * all others behind it, also those that several nodes append at once. The trace of a
 * device goes with it.
 */
export class TraceStore extends Context.Service<TraceStore, {
  /**
   * Traces the device until then, or changes until when. Entries of an earlier trace stay.
   * Returns false, without effect, if `max` other devices of the project are traced at
   * `now`, or if there is no such device.
   */
  readonly start: (trace: {
    readonly projectId: ProjectId
    readonly deviceId: DeviceId
    readonly until: number
    readonly now: number
    readonly max: number
  }) => Effect.Effect<boolean, StoreError>
  /** Ends the trace at `now`. Returns whether the device was traced. */
  readonly stop: (deviceId: DeviceId, now: number) => Effect.Effect<boolean, StoreError>
  /** Returns the devices of all projects that are traced at `now`. */
  readonly active: (now: number) => Effect.Effect<ReadonlyArray<TracedDevice>, StoreError>
  /** Adds entries of devices, each device once. The latest `keep` of a device stay. What has no trace is dropped. */
  readonly append: (noted: ReadonlyArray<NotedEntries>, keep: number) => Effect.Effect<void, StoreError>
  /**
   * Returns the first `limit` entries after the one with the number `after`, or without
   * it the latest; none if there is no trace.
   */
  readonly read: (
    deviceId: DeviceId,
    page: { readonly after?: number | undefined; readonly limit: number }
  ) => Effect.Effect<Option.Option<TracePart>, StoreError>
  /** Removes traces that have ended before then, with their entries. */
  readonly prune: (before: number) => Effect.Effect<void, StoreError>
}>()("@device-cloud/core/trace/TraceStore") {}
