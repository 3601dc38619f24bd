/**
 * A device without a network: it signs, connects, talks and listens as a real
 * one, inside the test's process.
 */
import {
  type CertificateRequired,
  connectText,
  type Device,
  DeviceAuthenticator,
  type DeviceDisabled,
  type DeviceNotConnectable,
  type DeviceNotFound,
  type DeviceReply,
  type DeviceSession,
  DeviceSessions,
  type DisconnectReason,
  type DownlinkMessage,
  type Json,
  Mac,
  type SignMethod,
  type StoreError,
  type SubDeviceOnly,
  type TooManyWrongSignatures,
  Uplink,
  type WrongSignature
} from "@device-cloud/core"
import { Clock, Deferred, Effect, Queue, type Scope } from "effect"

/** A connected device. */
export interface SimulatedDevice {
  /** The device as it was when it connected. */
  readonly device: Device
  /**
   * Sends a message, for example `thing.event.property.post`, and returns the
   * cloud's reply. A refusal is a reply with another code than 200. Fails with
   * `StoreError` if the message could not be stored.
   */
  readonly send: (method: string, params: unknown) => Effect.Effect<DeviceReply.DeviceReply, StoreError>
  /** Reports values of properties, each bare or as `{value, time}` (Unix milliseconds). Returns the cloud's reply. */
  readonly postProperties: (
    properties: Readonly<Record<string, Json>>
  ) => Effect.Effect<DeviceReply.DeviceReply, StoreError>
  /** Answers a command. Code 200: it was done. Default data: `{}`. */
  readonly answer: (
    command: Pick<DownlinkMessage, "id" | "method">,
    code: number,
    data?: Json
  ) => Effect.Effect<void, StoreError>
  /** What the cloud sent, in order: commands, shadow documents and more. It keeps the latest 1024 unread messages. */
  readonly received: Queue.Dequeue<DownlinkMessage>
  /** Waits until the cloud has ended the connection, and returns why. */
  readonly closed: Effect.Effect<DisconnectReason>
  /** Ends the connection from the device's side. A second time it does nothing. */
  readonly disconnect: Effect.Effect<void>
}

/** How a device connects. */
export interface ConnectOptions {
  /** Default `hmacsha1`. */
  readonly signMethod?: SignMethod
  /** Default: the device's own, so that the signature is right. */
  readonly deviceSecret?: string
  /** The IP address that it connects from. Default 127.0.0.1. */
  readonly address?: string
  /** Whether it confirms what it receives, as a PUBACK does. Default true. */
  readonly acknowledgesCommands?: boolean
}

/** Messages from the cloud that a test may leave unread; of more, the oldest are lost. */
const receivedCapacity = 1024

/**
 * Connects the device; it disconnects with the scope at the latest. Fails as a
 * real CONNECT does, for example with `WrongSignature` or `DeviceDisabled`.
 */
export const connect = Effect.fnUntraced(function*(
  device: Device,
  options: ConnectOptions = {}
): Effect.fn.Return<
  SimulatedDevice,
  | DeviceNotFound
  | WrongSignature
  | CertificateRequired
  | DeviceDisabled
  | SubDeviceOnly
  | TooManyWrongSignatures
  | DeviceNotConnectable
  | StoreError,
  DeviceAuthenticator | DeviceSessions | Mac | Uplink | Scope.Scope
> {
  const authenticator = yield* DeviceAuthenticator
  const sessions = yield* DeviceSessions
  const uplink = yield* Uplink
  const mac = yield* Mac
  const { deviceName, deviceSecret, productKey } = device
  const { acknowledgesCommands = true, signMethod = "hmacsha1" } = options
  const clientId = `${deviceName}&${productKey}`
  const signature = mac.sign(
    signMethod,
    options.deviceSecret ?? deviceSecret,
    connectText({ clientId, deviceName, productKey })
  )
  const identity = yield* authenticator.authenticate({
    address: options.address ?? "127.0.0.1",
    productKey,
    deviceName,
    clientId,
    signMethod,
    signature
  })

  const received = yield* Queue.sliding<DownlinkMessage>(receivedCapacity)
  const closed = yield* Deferred.make<DisconnectReason>()
  const session: DeviceSession = yield* sessions.attach({
    device: identity,
    ip: "127.0.0.1",
    deliver: (message, acknowledged) =>
      Effect.map(Queue.offer(received, message), () => acknowledgesCommands ? acknowledged?.() : undefined),
    backlog: () => undefined,
    close: (reason) => Effect.andThen(Deferred.succeed(closed, reason), Effect.suspend(() => sessions.detach(session)))
  })
  const disconnect = sessions.detach(session)
  yield* Effect.addFinalizer(() => disconnect)

  const send = Effect.fnUntraced(function*(method: string, params: unknown) {
    const receivedAt = yield* Clock.currentTimeMillis
    return yield* uplink.submit({ device: identity, method, params, receivedAt })
  })

  return {
    device,
    send,
    postProperties: (properties) => send("thing.event.property.post", properties),
    answer: ({ id, method }, code, data = {}) => Effect.asVoid(send(`${method}_reply`, { id, code, data })),
    received,
    closed: Deferred.await(closed),
    disconnect
  }
})
