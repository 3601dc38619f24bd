/**
 * Port: where topologies and add-sessions are kept.
 */
import { Context, type Effect, type Option } from "effect"
import type { DeviceId, DeviceIdentity } from "../device/Device.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { Attachment, SubDeviceName } from "../uplink/SubDeviceDirectory.ts"
import type { AddSession } from "./Topology.ts"

/** What became of sub-devices that were to be attached. */
export type AttachOutcome =
  | {
    readonly _tag: "Attached"
    /** Those that did not belong to the gateway before, in the order in which they were given. */
    readonly added: ReadonlyArray<DeviceId>
    /** Those of them that belonged to another gateway, with that one. */
    readonly moved: ReadonlyArray<Attachment>
  }
  | { readonly _tag: "OtherGateway"; readonly deviceId: DeviceId }
  /** The gateway would have more than `maxSubDevices`. */
  | { readonly _tag: "Full" }
  /** The gateway or a sub-device does not exist any more. */
  | { readonly _tag: "Gone" }

/** An add-session with the sub-devices that were added in it. */
export interface AddSessionDetail {
  readonly session: AddSession
  readonly isOpen: boolean
  /** In the order in which they were added; those that still exist. */
  readonly members: ReadonlyArray<DeviceIdentity>
}

/**
 * Laws: each call is one transaction. A device has at most one gateway, a
 * gateway at most one open add-session and at most `maxSubDevices`. What is kept
 * about a device goes with it.
 */
export class TopologyStore extends Context.Service<TopologyStore, {
  /**
   * Attaches all or none; those that are attached to this gateway already stay.
   * `isMove`: they leave the gateways that they belong to. Each that was added
   * becomes a member of the gateway's open add-session if that admits its product.
   */
  readonly attach: (options: {
    readonly gatewayId: DeviceId
    readonly subDeviceIds: ReadonlyArray<DeviceId>
    readonly isMove: boolean
    /** Unix milliseconds. */
    readonly at: number
  }) => Effect.Effect<AttachOutcome, StoreError>
  /** Detaches devices, those of one gateway only when it is given; answers what is no more. */
  readonly detach: (
    subDeviceIds: ReadonlyArray<DeviceId>,
    gatewayId?: DeviceId
  ) => Effect.Effect<ReadonlyArray<Attachment>, StoreError>
  /** In the order in which they were attached. */
  readonly subDevices: (gatewayId: DeviceId) => Effect.Effect<ReadonlyArray<DeviceIdentity>, StoreError>
  /** How many sub-devices each gateway has that has any. */
  readonly amounts: (gatewayIds: ReadonlyArray<DeviceId>) => Effect.Effect<ReadonlyMap<DeviceId, number>, StoreError>
  /** The sub-devices of these names, each with its gateway, in the order of the names; none: it has no gateway. */
  readonly attachments: (
    names: ReadonlyArray<SubDeviceName>
  ) => Effect.Effect<ReadonlyArray<Option.Option<Attachment>>, StoreError>
  /** Of those devices that belong to a gateway. */
  readonly attachmentsOf: (
    subDeviceIds: ReadonlyArray<DeviceId>
  ) => Effect.Effect<ReadonlyArray<Attachment>, StoreError>
  /** Opens an add-session in place of the gateway's open one, which is answered. */
  readonly openSession: (session: AddSession) => Effect.Effect<Option.Option<AddSession>, StoreError>
  readonly session: (
    gatewayId: DeviceId,
    sessionId: string
  ) => Effect.Effect<Option.Option<AddSessionDetail>, StoreError>
  /** False: it is not open. `at`: Unix milliseconds. */
  readonly endSession: (gatewayId: DeviceId, sessionId: string, at: number) => Effect.Effect<boolean, StoreError>
  /** Ends at most `limit` sessions whose time was over at `now`. Of several callers at once, one gets each. */
  readonly endDue: (options: {
    readonly now: number
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<AddSession>, StoreError>
  /** Those that are open now, of all gateways or of one. */
  readonly openSessions: (gatewayId?: DeviceId) => Effect.Effect<ReadonlyArray<AddSession>, StoreError>
  /** Forgets sessions that ended before a time, Unix milliseconds. */
  readonly forgetSessions: (endedBefore: number) => Effect.Effect<void, StoreError>
}>()("@device-cloud/core/gateway/TopologyStore") {}
