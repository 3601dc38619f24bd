/**
 * Something that a device says, whatever transport carried it.
 */
import type { DeviceIdentity } from "../device/Device.ts"

export interface UplinkMessage {
  readonly device: DeviceIdentity
  /** For example `thing.event.property.post`. */
  readonly method: string
  /** As the device sent it, not checked. */
  readonly params: unknown
  /** Unix milliseconds. */
  readonly receivedAt: number
  /** The sub-device of the gateway `device` that says it. */
  readonly subDevice?: Pick<DeviceIdentity, "productKey" | "deviceName">
}
