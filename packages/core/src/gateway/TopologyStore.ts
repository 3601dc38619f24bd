/**
 * Port: stores topologies and add-sessions.
 */
import { Context, type Effect, type Option } from "effect"
import type { DeviceId, DeviceIdentity } from "../device/Device.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { Attachment, SubDeviceName } from "../uplink/SubDeviceDirectory.ts"
import type { AddSession } from "./Topology.ts"
import type { AttachedBy, TopologyClaim } from "./TopologyClaim.ts"

/** The outcome of an attempt to attach sub-devices. */
export type AttachOutcome =
  | {
    readonly _tag: "Attached"
    /** The sub-devices that did not belong to the gateway before, in the given order. */
    readonly added: ReadonlyArray<DeviceId>
    /** The added sub-devices that another gateway has lost, each with that gateway. */
    readonly moved: ReadonlyArray<Attachment>
  }
  /** The sub-device belongs to another gateway, and may not leave it. */
  | { readonly _tag: "OtherGateway"; readonly deviceId: DeviceId }
  /** The proof of the sub-device is too old, or was used. */
  | { readonly _tag: "Spent"; readonly deviceId: DeviceId }
  /** The gateway would have more sub-devices than `maxSubDevices`. */
  | { readonly _tag: "Full" }
  /** The gateway or a sub-device does not exist any more. */
  | { readonly _tag: "Gone" }

/** An add-session with the sub-devices that were added in it. */
export interface AddSessionDetail {
  readonly session: AddSession
  readonly isOpen: boolean
  /** The sub-devices that still exist, in the order in which they were added, also those that have left the gateway. */
  readonly members: ReadonlyArray<DeviceIdentity>
}

/**
 * Laws: each call is one transaction. A device has at most one gateway, a
 * gateway at most one open add-session and at most `maxSubDevices`. Attachments
 * and add-sessions of a device go with the device.
 */
export class TopologyStore extends Context.Service<TopologyStore, {
  /**
   * Attaches all or none; sub-devices of this gateway stay as they are. Others must
   * pass `judgeAttempt`; they leave the gateways that they belong to, and
   * `claimAfter` is remembered of them. Each added sub-device becomes a member of
   * the gateway's open add-session if `admits` says so.
   */
  readonly attach: (options: {
    readonly gatewayId: DeviceId
    readonly subDeviceIds: ReadonlyArray<DeviceId>
    readonly by: AttachedBy
    /** Unix milliseconds. */
    readonly at: number
  }) => Effect.Effect<AttachOutcome, StoreError>
  /**
   * Detaches sub-devices, only from `gatewayId` if it is given. Returns the
   * attachments that it has ended; their claims are in `state` from now on.
   */
  readonly detach: (options: {
    readonly subDeviceIds: ReadonlyArray<DeviceId>
    readonly gatewayId?: DeviceId
    readonly state: Exclude<TopologyClaim["state"], "held">
    /** Unix milliseconds. */
    readonly at: number
  }) => Effect.Effect<ReadonlyArray<Attachment>, StoreError>
  /** Returns the sub-devices of a gateway in the order in which they were attached. */
  readonly subDevices: (gatewayId: DeviceId) => Effect.Effect<ReadonlyArray<DeviceIdentity>, StoreError>
  /** Counts the sub-devices of each gateway; a gateway without sub-devices is left out. */
  readonly amounts: (gatewayIds: ReadonlyArray<DeviceId>) => Effect.Effect<ReadonlyMap<DeviceId, number>, StoreError>
  /**
   * Returns the sub-devices of these names with their gateways, in the order of
   * the names; none: it has no gateway.
   */
  readonly attachments: (
    names: ReadonlyArray<SubDeviceName>
  ) => Effect.Effect<ReadonlyArray<Option.Option<Attachment>>, StoreError>
  /** Returns the attachments of those of the devices that belong to a gateway. */
  readonly attachmentsOf: (
    subDeviceIds: ReadonlyArray<DeviceId>
  ) => Effect.Effect<ReadonlyArray<Attachment>, StoreError>
  /** Opens an add-session in place of the gateway's open one. Returns the replaced session. Opens none if the gateway is gone. */
  readonly openSession: (session: AddSession) => Effect.Effect<Option.Option<AddSession>, StoreError>
  /** Returns an add-session of the gateway, open or ended, with its members. */
  readonly session: (
    gatewayId: DeviceId,
    sessionId: string
  ) => Effect.Effect<Option.Option<AddSessionDetail>, StoreError>
  /** Ends an open add-session at `at`, Unix milliseconds. Returns false if it is not open. */
  readonly endSession: (gatewayId: DeviceId, sessionId: string, at: number) => Effect.Effect<boolean, StoreError>
  /**
   * Ends at `now`, Unix milliseconds, at most `limit` add-sessions whose time is over
   * then, and returns them. Of concurrent callers only one gets each.
   */
  readonly endDue: (options: {
    readonly now: number
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<AddSession>, StoreError>
  /** Returns the open add-sessions of all gateways, or of one. */
  readonly openSessions: (gatewayId?: DeviceId) => Effect.Effect<ReadonlyArray<AddSession>, StoreError>
  /** Deletes add-sessions that ended before a time, Unix milliseconds. */
  readonly forgetSessions: (endedBefore: number) => Effect.Effect<void, StoreError>
}>()("@device-cloud/core/gateway/TopologyStore") {}
