/**
 * Port: which sub-devices belong to which gateway, for messages in which a
 * gateway speaks for them. The gateways implement it.
 */
import { Context, type Effect, type Option } from "effect"
import type { DeviceIdentity } from "../device/Device.ts"
import type { StoreError } from "../kernel/StoreError.ts"

/** What a sub-device is called. */
export type SubDeviceName = Pick<DeviceIdentity, "productKey" | "deviceName">

/** A sub-device with the gateway that it belongs to. */
export interface Attachment {
  readonly gateway: DeviceIdentity
  readonly subDevice: DeviceIdentity
}

export class SubDeviceDirectory extends Context.Service<SubDeviceDirectory, {
  /** The sub-devices of these names, in the order of the names; none: it has no gateway. */
  readonly attachments: (
    names: ReadonlyArray<SubDeviceName>
  ) => Effect.Effect<ReadonlyArray<Option.Option<Attachment>>, StoreError>
}>()("@device-cloud/core/uplink/SubDeviceDirectory") {}
