/**
 * Port: which devices are online, and through which connection and node.
 */
import { Context, type Effect } from "effect"
import type { DeviceId, DeviceIdentity } from "../device/Device.ts"
import type { ReactTo } from "../events/Reactions.ts"
import type { StoreError } from "../kernel/StoreError.ts"

/** A device came online or went offline. */
export type PresenceChange =
  | {
    readonly _tag: "Online"
    readonly deviceId: DeviceId
    /** Unique to the connection; a later connection replaces this one. */
    readonly connectionId: string
    /** The node that holds the connection. */
    readonly nodeId: string
    readonly ip: string
    /** Unix milliseconds. */
    readonly at: number
  }
  | {
    readonly _tag: "Offline"
    readonly deviceId: DeviceId
    readonly connectionId: string
    /** Unix milliseconds. */
    readonly at: number
  }

/**
 * What a change did. `waiting`: the device came online and has commands that have
 * not ended, or desired values.
 */
export type PresenceOutcome =
  /** The status has changed. `activated`: this is the first time that the device is online. */
  | { readonly _tag: "Changed"; readonly version: number; readonly activated: boolean; readonly waiting: boolean }
  /** The device was online already through another connection, which this one replaces. */
  | { readonly _tag: "Replaced"; readonly waiting: boolean }
  /**
   * Nothing has changed: `Online` for a device that is disabled or deleted,
   * `Offline` for a connection that is not the stored one, or a sighting of a
   * device that is connected.
   */
  | { readonly _tag: "Ignored" }

/** A device has sent something without holding a connection. */
export interface Sighting {
  readonly deviceId: DeviceId
  readonly ip: string
  /** Unix milliseconds. */
  readonly at: number
  /** Until when the device is online, Unix milliseconds. */
  readonly until: number
}

/** A device that the store has set offline because of a lapse. */
export interface LostDevice {
  readonly device: DeviceIdentity
  /** The version of the status after the change. */
  readonly version: number
}

/** Why devices that are stored as online must go offline. */
export type Lapse =
  /** They hold no connection, and their last sighting counts until `now` at the latest, Unix milliseconds. */
  | { readonly _tag: "SeenUntil"; readonly now: number }
  /** They hold no connection: only a sighting keeps them online. */
  | { readonly _tag: "NotConnected"; readonly deviceIds: ReadonlyArray<DeviceId> }
  /** They are connected through this node, which stops. */
  | { readonly _tag: "NodeStops"; readonly nodeId: string }
  /** They are connected through nodes whose last heartbeat is older than `since`, Unix milliseconds. */
  | { readonly _tag: "NodeSilent"; readonly since: number }

/**
 * Laws: each call is one transaction. `record` and `markSeen` take at most one
 * change for each device and return outcomes in the order of the changes.
 * `Online` stores status, address, connection and node, sets the activation time
 * the first time, and raises the version if the status changes. `Offline` has an
 * effect only for the stored connection, so that a late one never overwrites a
 * newer connection. The store calls `reactTo` with the outcomes and stores the
 * returned reactions in the same transaction.
 */
export class PresenceStore extends Context.Service<PresenceStore, {
  /** Stores that devices have come online or gone offline. */
  readonly record: (
    changes: ReadonlyArray<PresenceChange>,
    reactTo?: ReactTo<PresenceOutcome>
  ) => Effect.Effect<ReadonlyArray<PresenceOutcome>, StoreError>
  /**
   * Sets devices without connection online until the given times and activates
   * them. Without effect for a device that holds a connection.
   */
  readonly markSeen: (
    sightings: ReadonlyArray<Sighting>,
    reactTo?: ReactTo<PresenceOutcome>
  ) => Effect.Effect<ReadonlyArray<PresenceOutcome>, StoreError>
  /** Returns online devices to which the lapse applies, at most `limit`. */
  readonly lapsed: (lapse: Lapse, limit: number) => Effect.Effect<ReadonlyArray<DeviceIdentity>, StoreError>
  /** Sets those of the devices offline to which the lapse still applies, and returns them. `at`: Unix milliseconds. */
  readonly markOffline: (options: {
    readonly deviceIds: ReadonlyArray<DeviceId>
    readonly lapse: Lapse
    readonly at: number
    readonly reactTo?: ReactTo<LostDevice>
  }) => Effect.Effect<ReadonlyArray<LostDevice>, StoreError>
  /** Returns the id of the stored connection of each device that has one and is enabled. */
  readonly connectionsOf: (
    deviceIds: ReadonlyArray<DeviceId>
  ) => Effect.Effect<ReadonlyMap<DeviceId, string>, StoreError>
  /** Stores that the node is alive at `at`, Unix milliseconds. */
  readonly heartbeat: (nodeId: string, at: number) => Effect.Effect<void, StoreError>
  /** Forgets the stopping node, or all silent nodes, if no device is connected through it. */
  readonly forgetNodes: (
    lapse: Lapse & { readonly _tag: "NodeStops" | "NodeSilent" }
  ) => Effect.Effect<void, StoreError>
}>()("@device-cloud/core/connection/PresenceStore") {}
