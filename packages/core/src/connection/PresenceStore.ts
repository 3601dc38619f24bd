/**
 * Port: which devices are connected, and through which node.
 */
import { Context, type Effect } from "effect"
import type { ReactTo } from "../events/Reactions.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { DeviceId, DeviceIdentity } from "../device/Device.ts"

/** A device came online or went offline. */
export type PresenceChange =
  | {
    readonly _tag: "Online"
    readonly deviceId: DeviceId
    /** Names this connection; a later one replaces it. */
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
 * What a change did. `waiting`: it came online, and there are commands for it
 * that it has not confirmed, or values that are desired of it.
 */
export type PresenceOutcome =
  /** The status is another one now. */
  | { readonly _tag: "Changed"; readonly version: number; readonly activated: boolean; readonly waiting: boolean }
  /** The device was online already, through another connection; that connection counts no more. */
  | { readonly _tag: "Replaced"; readonly waiting: boolean }
  /** Nothing changed: `Online` for a device that is disabled or gone, `Offline` for a connection that counts no more. */
  | { readonly _tag: "Ignored" }

/** A device has said something without holding a connection. */
export interface Sighting {
  readonly deviceId: DeviceId
  readonly ip: string
  /** Unix milliseconds. */
  readonly at: number
  /** How long it counts as online, Unix milliseconds. */
  readonly until: number
}

/** A device whose status was changed on behalf of a node that is gone. */
export interface LostDevice {
  readonly device: DeviceIdentity
  readonly version: number
}

/** Why devices count as online no longer. */
export type Lapse =
  /** They hold no connection, and counted as online until `now`, Unix milliseconds. */
  | { readonly _tag: "SeenUntil"; readonly now: number }
  /** They hold no connection and count as online all the same. */
  | { readonly _tag: "NotConnected"; readonly deviceIds: ReadonlyArray<DeviceId> }
  /** They are connected through this node, which stops. */
  | { readonly _tag: "NodeStops"; readonly nodeId: string }
  /** They are connected through nodes whose last heartbeat is older than `since`, Unix milliseconds. */
  | { readonly _tag: "NodeSilent"; readonly since: number }

/**
 * Laws: each call is one transaction. `record` and `markSeen` take at most one
 * change for each device and return outcomes in their order. `Online` stores
 * status, address, connection and node, sets the activation time the first time,
 * and raises the version if the status changes. `Offline` counts only for the
 * connection that is stored, so a late one never overwrites a newer connection.
 * The reactions that `reactTo` returns for the outcomes are stored with them.
 */
export class PresenceStore extends Context.Service<PresenceStore, {
  readonly record: (
    changes: ReadonlyArray<PresenceChange>,
    reactTo?: ReactTo<PresenceOutcome>
  ) => Effect.Effect<ReadonlyArray<PresenceOutcome>, StoreError>
  /**
   * Devices that hold no connection are online until the given times, and
   * activated. For a device that holds one, nothing changes.
   */
  readonly markSeen: (
    sightings: ReadonlyArray<Sighting>,
    reactTo?: ReactTo<PresenceOutcome>
  ) => Effect.Effect<ReadonlyArray<PresenceOutcome>, StoreError>
  /** Online devices to which the lapse applies, at most `limit`. */
  readonly lapsed: (lapse: Lapse, limit: number) => Effect.Effect<ReadonlyArray<DeviceIdentity>, StoreError>
  /** Sets those of the devices offline to which the lapse still applies. `at`: Unix milliseconds. */
  readonly markOffline: (options: {
    readonly deviceIds: ReadonlyArray<DeviceId>
    readonly lapse: Lapse
    readonly at: number
    readonly reactTo?: ReactTo<LostDevice>
  }) => Effect.Effect<ReadonlyArray<LostDevice>, StoreError>
  /** The connection that counts, of each device that has one and is enabled. */
  readonly connectionsOf: (
    deviceIds: ReadonlyArray<DeviceId>
  ) => Effect.Effect<ReadonlyMap<DeviceId, string>, StoreError>
  /** The node is alive at `at`, Unix milliseconds. */
  readonly heartbeat: (nodeId: string, at: number) => Effect.Effect<void, StoreError>
  /** Forgets the stopping node, or all silent ones, that no device is connected through. */
  readonly forgetNodes: (
    lapse: Lapse & { readonly _tag: "NodeStops" | "NodeSilent" }
  ) => Effect.Effect<void, StoreError>
}>()("@device-cloud/core/connection/PresenceStore") {}
