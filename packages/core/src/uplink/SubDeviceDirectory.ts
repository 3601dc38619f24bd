/**
 * Port: says which sub-devices belong to which gateway, for messages in which a
 * gateway speaks for them. `gateway/Topologies` implements it.
 */
import { Context, type Effect, type Option } from "effect"
import type { DeviceIdentity } from "../device/Device.ts"
import type { StoreError } from "../kernel/StoreError.ts"

/** The name of a sub-device. */
export type SubDeviceName = Pick<DeviceIdentity, "productKey" | "deviceName">

/** A sub-device with the gateway that it belongs to. */
export interface Attachment {
  readonly gateway: DeviceIdentity
  readonly subDevice: DeviceIdentity
}

export class SubDeviceDirectory extends Context.Service<SubDeviceDirectory, {
  /**
   * Returns the sub-devices of these names with their gateways, in the order of
   * the names; none: it has no gateway.
   */
  readonly attachments: (
    names: ReadonlyArray<SubDeviceName>
  ) => Effect.Effect<ReadonlyArray<Option.Option<Attachment>>, StoreError>
}>()("@device-cloud/core/uplink/SubDeviceDirectory") {}
