/**
 * The link of a device inside the process of the cloud: a transport without a
 * network.
 */
import {
  type CertificateRequired,
  connectText,
  type Device,
  DeviceAuthenticator,
  type DeviceDisabled,
  type DeviceNotConnectable,
  type DeviceNotFound,
  DeviceReply,
  type DeviceSession,
  DeviceSessions,
  Mac,
  Objects,
  objectsPath,
  type SignMethod,
  type StoreError,
  type SubDeviceOnly,
  SubDeviceSessions,
  type TooManyWrongSignatures,
  Uplink,
  type WrongSignature
} from "@device-cloud/core"
import { Clock, Deferred, Effect, Latch, Option, type Scope, Stream } from "effect"
import {
  type DeviceLink,
  type Incoming,
  keyOf,
  type LinkEnd,
  LinkError,
  type OpenLink,
  type Receive
} from "./DeviceLink.ts"

/** How a device connects inside the process. */
export interface LocalOptions {
  /** Default `hmacsha1`. */
  readonly signMethod?: SignMethod
  /** Default: the device's own, so that the signature is right. */
  readonly deviceSecret?: string
  /** The IP address that it connects from. Default 127.0.0.1. */
  readonly address?: string
}

/** Why the cloud does not let a device in. */
export type LocalRefusal =
  | DeviceNotFound
  | WrongSignature
  | CertificateRequired
  | DeviceDisabled
  | SubDeviceOnly
  | TooManyWrongSignatures
  | DeviceNotConnectable
  | StoreError

/** What a link inside the process needs of the cloud. Objects are downloaded if `Objects` is at hand. */
export type LocalCloud = DeviceAuthenticator | DeviceSessions | Mac | SubDeviceSessions | Uplink

/** Messages that wait for a device that is slow to read; beyond it the cloud holds the next ones back. */
const roomForMessages = 8

/** Returns how the device connects. */
export const local = (device: Device, options: LocalOptions): OpenLink<LocalRefusal, LocalCloud> =>
  Effect.fnUntraced(function*(receive): Effect.fn.Return<DeviceLink, LocalRefusal, LocalCloud | Scope.Scope> {
    const authenticator = yield* DeviceAuthenticator
    const sessions = yield* DeviceSessions
    const subDevices = yield* SubDeviceSessions
    const uplink = yield* Uplink
    const mac = yield* Mac
    const objects = yield* Effect.serviceOption(Objects)
    const { deviceName, deviceSecret, productKey } = device
    const { address = "127.0.0.1", signMethod = "hmacsha1" } = options
    const clientId = `${deviceName}&${productKey}`
    const signature = mac.sign(
      signMethod,
      options.deviceSecret ?? deviceSecret,
      connectText({ clientId, deviceName, productKey })
    )
    const identity = yield* authenticator.authenticate({
      address,
      productKey,
      deviceName,
      clientId,
      signMethod,
      signature
    })

    const closed = yield* Deferred.make<LinkEnd>()
    const inbox = yield* makeInbox(receive)
    let isCut = false
    const session: DeviceSession = yield* sessions.attach({
      device: identity,
      ip: address,
      deliver: (message, acknowledged) =>
        isCut
          ? Effect.void
          : inbox.put({ to: message.subDevice ?? identity, message, acknowledge: () => acknowledged?.() }),
      backlog: inbox.backlog,
      close: (reason) => Effect.suspend(() => end(reason))
    })
    const end = (reason: LinkEnd) => Effect.andThen(Deferred.succeed(closed, reason), sessions.detach(session))
    // The cloud hears of the end of a cut connection only with the scope.
    const close = Effect.suspend(() => isCut ? Effect.void : end("lost"))
    yield* Effect.addFinalizer(() => end("lost"))

    const send: DeviceLink["send"] = Effect.fnUntraced(function*({ from, method, ...message }) {
      const params = arrived(message.params)
      if (isCut) return yield* Effect.never
      if (Deferred.isDoneUnsafe(closed)) return yield* new LinkError({ reason: "The connection has ended" })
      if (method.startsWith("combine.")) return yield* subDevices.answer(identity, session, address, method, params)
      const receivedAt = yield* Clock.currentTimeMillis
      if (keyOf(from) === keyOf(identity)) return yield* uplink.submit({ device: identity, method, params, receivedAt })
      const speaker = subDevices.carried(session, from as typeof identity)
      if (speaker === undefined) {
        yield* subDevices.refuse(identity, from as typeof identity)
        return DeviceReply.noSession
      }
      return yield* uplink.submit({ device: speaker, carrier: identity, method, params, receivedAt })
    })

    const download: DeviceLink["download"] = Effect.fnUntraced(function*(url) {
      const [, objectId = ""] = new URL(url).pathname.split(`${objectsPath}/`)
      if (Option.isNone(objects)) return yield* new LinkError({ reason: `The cloud keeps no objects: ${url}` })
      const { get, read } = objects.value
      const object = yield* Effect.mapError(
        get(objectId.split("/")[0]!),
        (error) => error._tag === "StoreError" ? error : new LinkError({ reason: `No object of the cloud: ${url}` })
      )
      const parts = yield* Stream.runCollect(read(object))
      return new Uint8Array(Buffer.concat(parts))
    })

    return { send, download, cut: Effect.sync(() => void (isCut = true)), closed: Deferred.await(closed), close }
  })

/** What arrives of what is sent: over the network, too, all of it is JSON. */
const arrived = (params: unknown): unknown => JSON.parse(JSON.stringify({ params })).params

/** What has arrived and is handed over one after the other. */
const makeInbox = Effect.fnUntraced(function*(receive: Receive) {
  const scope = yield* Effect.scope
  const waiting: Array<Incoming> = []
  const hasRoom = yield* Latch.make(true)
  let isBusy = false

  const next: Effect.Effect<void> = Effect.suspend(() => {
    const incoming = waiting.shift()
    if (waiting.length < roomForMessages) hasRoom.openUnsafe()
    if (incoming !== undefined) return Effect.andThen(receive(incoming), next)
    isBusy = false
    return Effect.void
  })

  return {
    put: (incoming: Incoming) =>
      Effect.suspend(() => {
        waiting.push(incoming)
        if (waiting.length >= roomForMessages) hasRoom.closeUnsafe()
        if (isBusy) return Effect.void
        isBusy = true
        return Effect.asVoid(Effect.forkIn(next, scope, { startImmediately: true }))
      }),
    backlog: () => waiting.length < roomForMessages ? undefined : hasRoom.await
  }
})
