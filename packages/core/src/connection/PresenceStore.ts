/**
 * Port: which devices are connected, and through which node.
 */
import { Context, type Effect } from "effect"
import type { NewExecution } from "../scene/execution/Execution.ts"
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

/** The executions of scenes that are stored with changes of status; it may be asked again. */
export type Fired<A> = (changes: ReadonlyArray<A>) => Effect.Effect<ReadonlyArray<NewExecution>, StoreError>

/** A device whose status was changed on behalf of a node that is gone. */
export interface LostDevice {
  readonly device: DeviceIdentity
  readonly version: number
}

/**
 * Laws: each call is one transaction. `record` takes at most one change per
 * device and answers in its order. `Online` stores status, address, connection
 * and node, sets the activation time the first time, and raises the version if
 * the status changes. `Offline` counts only for the connection that is stored,
 * so that a late one never overwrites a newer connection. What `fired` makes of
 * the outcomes is stored with them.
 */
export class PresenceStore extends Context.Service<PresenceStore, {
  readonly record: (
    changes: ReadonlyArray<PresenceChange>,
    fired?: Fired<PresenceOutcome>
  ) => Effect.Effect<ReadonlyArray<PresenceOutcome>, StoreError>
  /**
   * Devices that hold no connection are online until the given times, and
   * activated; for those that hold one, nothing changes. At most one sighting
   * per device; in their order: as `record` answers.
   */
  readonly sight: (
    sightings: ReadonlyArray<Sighting>,
    fired?: Fired<PresenceOutcome>
  ) => Effect.Effect<ReadonlyArray<PresenceOutcome>, StoreError>
  /** Sets at most `limit` devices offline that hold no connection and counted as online until `now`. */
  readonly expire: (options: {
    readonly now: number
    readonly limit: number
    readonly fired?: Fired<LostDevice>
  }) => Effect.Effect<ReadonlyArray<LostDevice>, StoreError>
  /** Sets devices offline that hold no connection and count as online. */
  readonly endSightings: (options: {
    readonly deviceIds: ReadonlyArray<DeviceId>
    readonly at: number
    readonly fired?: Fired<LostDevice>
  }) => Effect.Effect<ReadonlyArray<LostDevice>, StoreError>
  /** The connection that counts, of each device that has one and is enabled. */
  readonly connectionsOf: (
    deviceIds: ReadonlyArray<DeviceId>
  ) => Effect.Effect<ReadonlyMap<DeviceId, string>, StoreError>
  /** The node is alive at `at` (Unix milliseconds). */
  readonly heartbeat: (nodeId: string, at: number) => Effect.Effect<void, StoreError>
  /**
   * Sets at most `limit` devices offline that are connected through the given
   * node, or, without one, through nodes without a heartbeat since `before`;
   * forgets nodes that have no device left.
   */
  readonly release: (options: {
    readonly node: { readonly id: string } | { readonly silentSince: number }
    readonly at: number
    readonly limit: number
    readonly fired?: Fired<LostDevice>
  }) => Effect.Effect<ReadonlyArray<LostDevice>, StoreError>
}>()("@device-cloud/core/connection/PresenceStore") {}
