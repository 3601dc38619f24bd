/**
 * Changes of a device that scenes may react to.
 */
import type { DeviceIdentity } from "../device/Device.ts"
import type { Json } from "../kernel/Json.ts"

export type ChangedDevice = Pick<DeviceIdentity, "deviceId" | "productKey" | "deviceName">

/** A stored property value that a report changes. */
export interface ChangedValue {
  readonly value: Json
  /** When the value was measured, Unix milliseconds. */
  readonly time: number
  /** The value before; absent: this is the first value. */
  readonly previous?: Json
}

interface OfDevice {
  readonly device: ChangedDevice
  /** When the cloud learned of the change, Unix milliseconds. */
  readonly at: number
}

export type DeviceChange =
  | OfDevice & { readonly _tag: "PropertiesChanged"; readonly properties: Readonly<Record<string, ChangedValue>> }
  | OfDevice & {
    readonly _tag: "EventReported"
    readonly eventId: string
    /** When the event happened, Unix milliseconds. */
    readonly time: number
    readonly value: Json
  }
  | OfDevice & { readonly _tag: "StatusChanged"; readonly status: "online" | "offline" }
