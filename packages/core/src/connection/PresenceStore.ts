/**
 * Port: which devices are online, and which session on which node owns each of them
 * (docs/ownership.md).
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
    /**
     * The epoch of a connection that goes on, whose device may have been set offline
     * meanwhile: without effect if the device has had a later owner. Absent: the
     * connection is new.
     */
    readonly resumes?: number
  }
  | {
    readonly _tag: "Offline"
    readonly deviceId: DeviceId
    readonly connectionId: string
    /** Unix milliseconds. */
    readonly at: number
  }

/** What a connection learns when it becomes the owner of its device. */
export interface OwnerClaim {
  /** The fencing number of the session: later sessions of the device have larger ones. At least 1. */
  readonly epoch: number
  /**
   * The epoch of the session that was stored before this one, whether or not that has
   * ended; 0: there was none. If the answer to an earlier call was lost, that of the
   * call.
   */
  readonly epochBefore: number
  /** The message id of the device's latest command that is stored; 0: it never had one. */
  readonly lastCommand: number
  /** How often what is desired of the device has changed since it first connected. */
  readonly desiredChanges: number
  /** The device has commands that have not ended, or desired values. */
  readonly waiting: boolean
  /** The node of the connection that this one replaces; undefined: the device had none. */
  readonly previous: { readonly nodeId: string } | undefined
}

/** What a change did. `claim`: that of the connection; absent for `Offline` and for sightings. */
export type PresenceOutcome =
  /** The status has changed. `activated`: this is the first time that the device is online. */
  | { readonly _tag: "Changed"; readonly version: number; readonly activated: boolean; readonly claim?: OwnerClaim }
  /** The device was online already: through another connection, which this one replaces, or through sightings. */
  | { readonly _tag: "Replaced"; readonly claim?: OwnerClaim }
  /** The device was online through this connection already: the answer to an earlier call was lost. */
  | { readonly _tag: "Kept"; readonly claim: OwnerClaim }
  /**
   * Nothing has changed: the device is disabled or deleted, a connection that resumes
   * has had a later owner after it, or `Offline` names a connection that is not the
   * stored one.
   */
  | { readonly _tag: "Ignored" }

/** The stored owner of a device. */
export interface Owner {
  readonly nodeId: string
  readonly connectionId: string
  readonly epoch: number
  /** As in `OwnerClaim`. */
  readonly lastCommand: number
  /** As in `OwnerClaim`. */
  readonly desiredChanges: number
  /** Whether the device is enabled. */
  readonly enabled: boolean
}

/** How long a device counts as online after a sighting, milliseconds. */
export const sightingMillis = 300_000

/** A device has sent something without holding a connection. */
export interface Sighting {
  readonly deviceId: DeviceId
  readonly ip: string
  /** Unix milliseconds. */
  readonly at: number
  /** For how long the device is online from now on, by the store's clock, milliseconds, at most {@link sightingMillis}. */
  readonly lasts: number
}

/** A device that the store has set offline because of a lapse. */
export interface LostDevice {
  readonly device: DeviceIdentity
  /** The version of the status after the change. */
  readonly version: number
}

/** What the heartbeats of nodes say, all in milliseconds and by the store's clock. */
export interface HeartbeatLimits {
  /**
   * A node whose latest heartbeat is older than this is silent. A store that knows
   * that a node has ended may call it silent after `gap`.
   */
  readonly silence: number
  /**
   * A node is steady, and may judge others, if its latest heartbeat is not older
   * than this and for as long as `silence` its heartbeats have been no further apart.
   */
  readonly gap: number
}

/** Who sets devices offline that are not its own. Without effect unless the node is steady. */
export interface Judge {
  readonly nodeId: string
  readonly limits: HeartbeatLimits
}

/** Why devices that are stored as online must go offline. */
export type Lapse =
  /** They hold no connection, and the time of their last sighting is over. */
  | { readonly _tag: "SightingEnds"; readonly judge: Judge }
  /** They hold no connection: only a sighting keeps them online. */
  | { readonly _tag: "NotConnected"; readonly deviceIds: ReadonlyArray<DeviceId> }
  /** They are connected through this node, which stops. */
  | { readonly _tag: "NodeStops"; readonly nodeId: string }
  /** They are connected through this node, which is silent. */
  | { readonly _tag: "NodeSilent"; readonly nodeId: string; readonly judge: Judge }

/** What a node says of itself. */
export interface NodeReport {
  /** Unix milliseconds. */
  readonly startedAt: number
  /** Devices that are connected to it. */
  readonly connections: number
  /** Whether it is about to end. */
  readonly isDraining: boolean
}

/** A node that has spoken and is not forgotten. Whether it is silent goes by the clock of the store. */
export interface NodeState extends Omit<NodeReport, "connections"> {
  readonly nodeId: string
  /** Its latest heartbeat, Unix milliseconds. */
  readonly heartbeatAt: number
  /** Whether it is heard, and its heartbeats have come without a gap for as long as the silence of a node lasts. */
  readonly isSteady: boolean
  readonly isSilent: boolean
  /** Null: it has not said. */
  readonly connections: number | null
}

/**
 * Laws: each call is one transaction. `record` and `markSeen` take at most one
 * change for each device and return outcomes in the order of the changes.
 * `Online` stores status, address, connection and node, sets the activation time
 * the first time, hands out a new epoch, and raises the version if the status
 * changes. `Offline` has an effect only for the stored connection, so that a late
 * one never overwrites a newer connection. The store calls `reactTo` with the
 * outcomes and stores the returned reactions in the same transaction.
 *
 * Whether a node is silent or a sighting is over is decided by the clock of the
 * store alone. While devices of a silent node go offline, its heartbeat waits: it
 * comes wholly before them or after them.
 */
export class PresenceStore extends Context.Service<PresenceStore, {
  /** Stores that devices have come online or gone offline. */
  readonly record: (
    changes: ReadonlyArray<PresenceChange>,
    reactTo?: ReactTo<PresenceOutcome>
  ) => Effect.Effect<ReadonlyArray<PresenceOutcome>, StoreError>
  /**
   * Sets devices without connection online for the given times and activates
   * them. Without effect for a device that holds a connection.
   */
  readonly markSeen: (
    sightings: ReadonlyArray<Sighting>,
    reactTo?: ReactTo<PresenceOutcome>
  ) => Effect.Effect<ReadonlyArray<PresenceOutcome>, StoreError>
  /**
   * Returns online devices to which the lapse applies, at most `limit`. Those of a
   * node come in the order of their ids, beginning after the id `after`.
   */
  readonly lapsed: (
    lapse: Lapse,
    limit: number,
    after?: DeviceId
  ) => Effect.Effect<ReadonlyArray<DeviceIdentity>, StoreError>
  /** Sets those of the devices offline to which the lapse still applies, and returns them. `at`: Unix milliseconds. */
  readonly markOffline: (options: {
    readonly deviceIds: ReadonlyArray<DeviceId>
    readonly lapse: Lapse
    readonly at: number
    readonly reactTo?: ReactTo<LostDevice>
  }) => Effect.Effect<ReadonlyArray<LostDevice>, StoreError>
  /** Returns the stored owner of each device that is connected. */
  readonly connectionsOf: (
    deviceIds: ReadonlyArray<DeviceId>
  ) => Effect.Effect<ReadonlyMap<DeviceId, Owner>, StoreError>
  /**
   * Counts a change of what is desired of the device. Returns how many there were and
   * the node that it is connected to; undefined: the device has never been connected.
   */
  readonly noteDesired: (
    deviceId: DeviceId
  ) => Effect.Effect<
    { readonly desiredChanges: number; readonly nodeId: string | undefined } | undefined,
    StoreError
  >
  /**
   * Stores that the node is alive. `wasSilent`: its devices may have been set offline
   * since its last heartbeat, or it had none.
   */
  readonly heartbeat: (
    nodeId: string,
    limits: HeartbeatLimits
  ) => Effect.Effect<{ readonly wasSilent: boolean }, StoreError>
  /**
   * Returns the nodes that are silent. A node that has devices and no heartbeat
   * counts as heard now.
   */
  readonly silentNodes: (judge: Judge) => Effect.Effect<ReadonlyArray<string>, StoreError>
  /** Stores what a node says of itself. Without effect for a node without heartbeat. */
  readonly report: (nodeId: string, report: NodeReport) => Effect.Effect<void, StoreError>
  /** Returns the nodes that have spoken and are not forgotten, by id. */
  readonly nodes: (limits: HeartbeatLimits) => Effect.Effect<ReadonlyArray<NodeState>, StoreError>
  /** Forgets the node to which the lapse applies, if no device is connected through it. */
  readonly forgetNode: (lapse: Lapse & { readonly _tag: "NodeStops" | "NodeSilent" }) => Effect.Effect<void, StoreError>
}>()("@device-cloud/core/connection/PresenceStore") {}
