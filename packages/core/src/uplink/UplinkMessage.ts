/**
 * A message of a device, whatever transport carries it.
 */
import type { DeviceIdentity } from "../device/Device.ts"

export interface UplinkMessage {
  /** The device that speaks. */
  readonly device: DeviceIdentity
  /** For example `thing.event.property.post`. */
  readonly method: string
  /** As the device sent them, not checked. */
  readonly params: unknown
  /** Unix milliseconds. */
  readonly receivedAt: number
  /** Bytes of the message on its way. Default 0. */
  readonly bytes?: number
  /** The device whose connection carries the message, for example a gateway. Default: `device`. */
  readonly carrier?: DeviceIdentity
  /** The sub-device that the gateway `device` speaks for. */
  readonly subDevice?: Pick<DeviceIdentity, "productKey" | "deviceName">
}
