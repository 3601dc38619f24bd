/**
 * What a trace of a device consists of.
 */
import type { DeviceIdentity } from "../device/Device.ts"
import type { InputIssue } from "../kernel/InvalidInput.ts"
import type { TracedText } from "./TracedText.ts"

/** Entries of a device that are kept, the latest. */
export const keptEntries = 1000
/** Devices of a project that may be traced at a time. */
export const maxTracedDevices = 20
/** How long a device may be traced without being asked again, minutes. */
export const maxTraceMinutes = 60
/** How long entries are kept after the end of their trace, milliseconds. */
export const keptAfterEnd = 10 * 60_000

/**
 * What has happened. `uplink`: the device has sent a message; `downlink`: the cloud has
 * sent one to it; `refused`: it was not let in.
 */
export type TraceKind = "uplink" | "downlink" | "connected" | "disconnected" | "refused"

/** What the cloud has answered. */
export interface TracedReply {
  /** 200: the message has taken effect. */
  readonly code: number
  readonly message: string
  readonly data: TracedText
  /** What does not fit, in the words of the API. */
  readonly issues: ReadonlyArray<InputIssue>
}

/** One entry of a trace. */
export interface TraceEntry {
  /** When the message arrived, or was sent, Unix milliseconds. */
  readonly at: number
  readonly kind: TraceKind
  /** For example `mqtt`, `websocket`, `http` or `mqtt-bridge`. */
  readonly transport: string
  /** The node that says so. */
  readonly nodeId: string
  /** The gateway through which the device speaks; absent: it speaks for itself. */
  readonly gateway?: Pick<DeviceIdentity, "productKey" | "deviceName">
  /** The address of the client, if the device has connected or was refused. */
  readonly address?: string
  /** The topic of a message; the action of a message over HTTP. */
  readonly topic?: string
  readonly payload?: TracedText
  /** Absent: the message got none. */
  readonly reply?: TracedReply
  /** Why a connection has ended or a device was refused. */
  readonly reason?: string
}

/** The gateway of an entry, if another device carries the message. */
export const throughGateway = (device: DeviceIdentity, carrier: DeviceIdentity | undefined) =>
  carrier === undefined || carrier.deviceId === device.deviceId
    ? {}
    : { gateway: { productKey: carrier.productKey, deviceName: carrier.deviceName } }
