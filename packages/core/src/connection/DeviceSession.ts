/**
 * The session of a connected device: what a transport offers of the connection,
 * and what others can hear about it.
 */
import { Effect, Fiber, Schema } from "effect"
import type { DeviceId, DeviceIdentity } from "../device/Device.ts"
import { given } from "../kernel/GivenEffect.ts"
import type { Json } from "../kernel/Json.ts"
import type { Owner, OwnerClaim } from "./PresenceStore.ts"

/** A message from the cloud to a device, whatever transport carries it. */
export interface DownlinkMessage {
  /**
   * Of a command its message id, which the device's reply names. Other messages have
   * ids of their own, one of which may equal that of a command: a transport that
   * tells confirmations apart uses numbers of its own.
   */
  readonly id: string
  /** For example `thing.service.property.set`. */
  readonly method: string
  readonly params: Json
  /** What a raw device gets in place of method and params. */
  readonly bytes?: Uint8Array
  /** Whether somebody waits for the answer: some devices have topics of their own for such calls. */
  readonly synchronous?: boolean
  /** The sub-device behind the connection that gets the message; undefined: the connection's own device. */
  readonly subDevice?: DeviceIdentity
}

/**
 * Why the cloud ends a connection. `detached`: the sub-device no longer belongs to
 * the gateway; `revoked`: the certificate of the device no longer counts.
 */
export const DisconnectReason = Schema.Literals(["replaced", "disabled", "deleted", "detached", "revoked", "shutdown"])
export type DisconnectReason = typeof DisconnectReason.Type

/** What operators are told about the end of a connection. */
export const disconnectSentences: Readonly<Record<DisconnectReason, string>> = {
  replaced: "another connection of the device took its place",
  disabled: "the device was disabled",
  deleted: "the device was deleted",
  detached: "the sub-device no longer belongs to the gateway",
  revoked: "the certificate of the device no longer counts",
  shutdown: "the server stops"
}

/** What a transport offers of a connection. */
export interface DeviceConnection {
  readonly device: DeviceIdentity
  /** The device's address. */
  readonly ip: string
  /** How the device is connected, for operators: for example `mqtt`. Default `other`. */
  readonly transport?: string
  /** The gateway whose connection carries this one; absent: the device has a connection of its own. */
  readonly gateway?: DeviceIdentity
  /** Why the connection has ended, in a sentence for operators; asked when it has. */
  readonly endReason?: () => string
  /** The fingerprint of the certificate with which the device has connected; absent: it had another proof. */
  readonly certificate?: string | undefined
  /**
   * Hands the message to the network, and does not wait for the device. The cloud waits
   * 5 seconds for this effect, then counts the message as not handed over. Calls
   * `acknowledged` when the device has confirmed the message.
   */
  readonly deliver: (message: DownlinkMessage, acknowledged?: () => void) => Effect.Effect<void>
  /**
   * Returns undefined while the device is ready and there is room for another
   * message. Otherwise returns an effect that waits for that or for the end of the
   * connection; look again after it.
   */
  readonly backlog: () => Effect.Effect<void> | undefined
  /**
   * Returns whether the device listens to its shadow. If not, calls `then` once it
   * does, unless a later call has given another one. Absent: it always does.
   */
  readonly hearsShadow?: (then: () => void, subDevice?: DeviceIdentity) => boolean
  /** Begins to end the connection, and does not wait for the device: the cloud waits 5 seconds for this effect. */
  readonly close: (reason: DisconnectReason) => Effect.Effect<void>
}

/** An attached connection. */
export interface DeviceSession {
  /** Unique among the sessions of all nodes. */
  readonly id: string
  readonly connection: DeviceConnection
  /**
   * The fencing number under which the store knows the session as the owner of its
   * device: a later session of the device has a larger one. 0: it is not stored yet.
   * Grows when the device was set offline by mistake and the session claims it again.
   */
  readonly epoch: number
  /** The epoch of the device's session before this one, on whichever node, whether or not that has ended; 0: none. */
  readonly epochBefore: number
}

/** How long the cloud waits for what a transport does. */
const patience = "5 seconds"

/** Runs what a transport does. Dies if that takes longer than `patience`: then it goes on, and nobody waits for it. */
const waitingFor = (name: string, make: () => Effect.Effect<void>): Effect.Effect<void> =>
  Effect.flatMap(Effect.forkDetach(given(name, make), { startImmediately: true }), (fiber) =>
    // Most have ended at once.
    fiber.pollUnsafe() ?? Effect.timeoutOrElse(Effect.interruptible(Fiber.join(fiber)), {
      duration: patience,
      orElse: () => Effect.die(new Error(`${name} takes longer than ${patience}`))
    }))

/** Ends a connection. A transport that fails at it, or does not return, affects neither what follows nor other devices. */
export const close = (connection: DeviceConnection, reason: DisconnectReason): Effect.Effect<void> =>
  Effect.catchCause(
    waitingFor("close of a connection", () => connection.close(reason)),
    (cause) => Effect.logError("The connection of a device could not be ended", cause)
  )

/** Hands a message to a connection. Dies if the transport fails at it, or does not return. */
export const hand = (
  connection: DeviceConnection,
  message: DownlinkMessage,
  acknowledged?: () => void
): Effect.Effect<void> => waitingFor("deliver of a connection", () => connection.deliver(message, acknowledged))

/** Hands a message to a connection. A transport that fails at it, or does not return, affects neither what follows nor other devices. */
export const tell = (connection: DeviceConnection, message: DownlinkMessage): Effect.Effect<void> =>
  Effect.catchCause(
    hand(connection, message),
    (cause) => Effect.logError("A message could not be handed to the connection of a device", cause)
  )

/** Why the connection of a session has ended, in a sentence for operators. */
export const endReasonOf = ({ connection }: DeviceSession): string =>
  connection.endReason?.() ?? "the connection has ended"

/** Why a session has ended that never came about, in a sentence for operators. */
export const gaveUp = "it could not be connected"

/** What the store knows of a device that a session may not have heard of. */
export type StoredNews = Pick<Owner, "lastCommand" | "desiredChanges">

/**
 * Hears about sessions. What returns nothing runs synchronously, in the turn of the
 * event loop in which something happens.
 */
export interface SessionListener {
  /** The device has connected; its status is about to be stored. */
  readonly attaching: (session: DeviceSession) => void
  /**
   * The device is online and can be reached. The session before this one, on
   * whichever node, has ended and has stored what it did, or has had a second for it.
   */
  readonly attached: (session: DeviceSession, claim: OwnerClaim) => void
  /**
   * Another session has become the owner of the device: nothing more may be delivered
   * through this one. The effect waits until the device has confirmed what is on its
   * way. It is interrupted after 250 milliseconds; then the connection closes.
   */
  readonly handingOver: (session: DeviceSession) => Effect.Effect<void>
  /** The session has ended, or attaching it failed. */
  readonly detached: (session: DeviceSession) => void
  /**
   * Runs after `detached`, before the next session of the device is announced and
   * before the device is set offline: waits until what was done through this session
   * is stored.
   */
  readonly settled: (session: DeviceSession) => Effect.Effect<void>
  /**
   * The session was compared with the store and is the owner still. Happens every 10
   * seconds at least, and when notices of other nodes may be lost.
   */
  readonly swept: (session: DeviceSession, news: StoredNews) => void
  /**
   * The device was set offline although it is connected, and this session has claimed it
   * again: what was due meanwhile was not told.
   */
  readonly reclaimed: (session: DeviceSession) => void
  /**
   * The device must no longer be connected. Heard on the node that says so and on the
   * owner's. The device may have no session.
   */
  readonly cutOff: (deviceId: DeviceId) => void
}
