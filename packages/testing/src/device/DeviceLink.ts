/**
 * What carries the messages of a simulated device: calls inside the process, MQTT
 * or HTTP. A device is the same on each of them.
 */
import type { DeviceReply, DisconnectReason, DownlinkMessage, Json, StoreError } from "@device-cloud/core"
import { type Effect, Schema, type Scope } from "effect"

/** The names of a device. */
export interface DeviceNames {
  readonly productKey: string
  readonly deviceName: string
}

/** Who a device is, and the secret by which it proves so. */
export interface DeviceTriple extends DeviceNames {
  readonly deviceSecret: string
}

/** Throws a `TypeError` that names the first member that is no text. */
export const checkTriple = (device: DeviceTriple): void => {
  for (const field of ["productKey", "deviceName", "deviceSecret"] as const) {
    const value: unknown = device?.[field]
    if (typeof value !== "string") throw new TypeError(`${field}: expected that of the device, not ${String(value)}`)
  }
}

/** Throws a `TypeError` unless `url` is an address of one of these schemes. */
export const checkUrl = (url: string, schemes: ReadonlyArray<string>): void => {
  if (URL.canParse(url) && schemes.includes(new URL(url).protocol.slice(0, -1))) return
  throw new TypeError(`url: expected an address such as ${schemes[0]}://cloud.example.com, not ${url}`)
}

/** The address of a path at a server, whose own address may end with a slash. */
export const addressAt = (url: string, path: string): string => `${url.replace(/\/+$/, "")}${path}`

/** The text that tells devices apart. */
export const keyOf = ({ deviceName, productKey }: DeviceNames): string => `${productKey}/${deviceName}`

/** A message of a device, or of a sub-device that it carries. */
export interface DeviceMessage {
  readonly from: DeviceNames
  /** For example `thing.event.property.post`. */
  readonly method: string
  readonly params: Json
}

/** A message of the cloud. */
export interface Incoming {
  /** The device, or the sub-device behind it. */
  readonly to: DeviceNames
  readonly message: DownlinkMessage
  /** Confirms the message, as a PUBACK does. */
  readonly acknowledge: () => void
}

/** The message got no reply: the link has ended, or the reply did not come in time. */
export class LinkError extends Schema.TaggedError<LinkError>()("LinkError", { reason: Schema.String }) {
  override get message(): string {
    return this.reason
  }
}

/** The cloud does not let the device in. */
export class ConnectRefused extends Schema.TaggedError<ConnectRefused>()("ConnectRefused", {
  /** The return code of the CONNACK; undefined: the connection ended without one. */
  returnCode: Schema.UndefinedOr(Schema.Finite),
  reason: Schema.String
}) {
  override get message(): string {
    return this.reason
  }
}

/** Why a link has ended; `lost`: the device has left, or was not told. */
export type LinkEnd = DisconnectReason | "lost"

/** An open link. */
export interface DeviceLink {
  /**
   * Sends a message and returns the reply; of a message that gets no reply, code 200
   * when the cloud has confirmed it. Fails with `StoreError` inside the process, if
   * the message could not be stored.
   */
  readonly send: (message: DeviceMessage) => Effect.Effect<DeviceReply.DeviceReply, StoreError | LinkError>
  /** Returns the bytes at an address that the cloud has told the device. */
  readonly download: (url: string) => Effect.Effect<Uint8Array, StoreError | LinkError>
  /** Cuts the link so that neither side hears of it: nothing passes any more, in either direction. */
  readonly cut: Effect.Effect<void>
  /** Waits for the end of the link. */
  readonly closed: Effect.Effect<LinkEnd>
  /** Ends the link. A second time it does nothing. */
  readonly close: Effect.Effect<void>
}

/** Takes a message of the cloud. The link reads the next one when it has ended. */
export type Receive = (incoming: Incoming) => Effect.Effect<void>

/** Opens a link; it ends with the scope at the latest. */
export type OpenLink<E, R> = (receive: Receive) => Effect.Effect<DeviceLink, E, R | Scope.Scope>
