/**
 * Passes a device from its session to the next one, on this node or another one,
 * so that the next one begins when the one before has ended and has stored what it
 * did (docs/ownership.md).
 */
import { Deferred, Effect, Option, type Scope } from "effect"
import type { DeviceId } from "../device/Device.ts"
import { close, type DeviceSession } from "./DeviceSession.ts"
import type { NodeSessions, OwnedSession } from "./NodeSessions.ts"

/** How long a session that is replaced waits for what is on its way to the device. */
const drainTime = "250 millis"
/** How long the next session waits for the one before. */
const waitTime = "1 second"
/** How often another node is asked to release a device until it does: notices may be lost. */
const askEvery = "300 millis"

/** What the nodes tell each other. */
export interface Messages {
  /** Tells a node that its session of the device is replaced by that with the epoch. */
  readonly replaced: (deviceId: DeviceId, epoch: number, nodeId: string) => Effect.Effect<void>
  /** Tells a node that the sessions of the device before that with the epoch have ended here. */
  readonly released: (deviceId: DeviceId, epoch: number, nodeId: string) => Effect.Effect<void>
}

export interface HandOver {
  /** Delivers nothing more to a session, and waits for a moment for what is on its way to the device. */
  readonly retire: (session: DeviceSession) => Effect.Effect<void>
  /** Ends a session that another one of its device has replaced. */
  readonly replace: (session: OwnedSession) => Effect.Effect<void>
  /** Ends the session whose connection has ended, and waits until what it did is stored. Returns false if it had ended. */
  readonly end: (session: DeviceSession) => Effect.Effect<boolean>
  /**
   * Ends all earlier sessions of the device and waits for that, for a second at most;
   * returns whether they have ended. `previous`: the one on this node. `nodeId`: another
   * node with one. Ends the session itself if another node has a later one. Returns
   * undefined if nothing ends.
   */
  readonly begin: (
    session: OwnedSession,
    previous: OwnedSession | undefined,
    nodeId: string | undefined
  ) => Effect.Effect<boolean> | undefined
  /** Another node has a session of the device with this epoch. */
  readonly heardReplaced: (deviceId: DeviceId, epoch: number, nodeId: string) => Effect.Effect<void>
  /** Another node has ended its sessions of the device before that with this epoch. */
  readonly heardReleased: (deviceId: DeviceId, epoch: number) => void
}

const keyOf = (deviceId: DeviceId, epoch: number) => `${epoch} ${deviceId}`

export const make: (
  nodeSessions: NodeSessions,
  messages: Messages
) => Effect.Effect<HandOver, never, Scope.Scope> = Effect.fnUntraced(function*(nodeSessions, messages) {
  const scope = yield* Effect.scope
  /** What ends of the sessions of each device, here and where the device was asked for, with the epochs. */
  const ending = new Map<DeviceId, Map<Deferred.Deferred<void>, number>>()
  /** The releases that sessions of this node wait for, by {@link keyOf}. */
  const awaited = new Map<string, Deferred.Deferred<void>>()
  /** The epochs of later sessions elsewhere, of sessions that are being stored. */
  const later = new WeakMap<DeviceSession, number>()

  /** Runs what ends sessions of the device before that with the epoch, or this one, beside others that end. */
  const ends = <A>(deviceId: DeviceId, epoch: number, run: Effect.Effect<A>): Effect.Effect<A> =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const hasEnded = Deferred.makeUnsafe<void>()
        const others = ending.get(deviceId)
        if (others === undefined) ending.set(deviceId, new Map([[hasEnded, epoch]]))
        else others.set(hasEnded, epoch)
        return hasEnded
      }),
      () => run,
      (hasEnded) =>
        Effect.suspend(() => {
          const all = ending.get(deviceId)!
          all.delete(hasEnded)
          if (all.size === 0) ending.delete(deviceId)
          return Deferred.succeed(hasEnded, undefined)
        })
    )

  /**
   * Waits for what ends now of the device's sessions before that with the epoch. Who
   * waits, waits for smaller epochs: two nodes that ask each other do not wait for ever.
   */
  const whileEnding = (deviceId: DeviceId, epoch: number) =>
    Effect.suspend(() =>
      Effect.forEach(
        [...ending.get(deviceId) ?? []].flatMap(([hasEnded, of]) => of < epoch ? [hasEnded] : []),
        Deferred.await,
        { concurrency: "unbounded", discard: true }
      )
    )

  const end = (session: DeviceSession) =>
    ends(
      session.connection.device.deviceId,
      session.epoch,
      Effect.suspend(() =>
        nodeSessions.end(session) ? Effect.as(nodeSessions.settle(session), true) : Effect.succeed(false)
      )
    )

  const retire = (session: DeviceSession) =>
    Effect.asVoid(Effect.timeoutOption(nodeSessions.retire(session), drainTime))

  const replace = (session: OwnedSession) =>
    ends(
      session.connection.device.deviceId,
      session.epoch,
      Effect.gen(function*() {
        if (!nodeSessions.isLive(session)) return
        yield* retire(session)
        yield* close(session.connection, "replaced")
        yield* end(session)
      })
    )

  /** Asks a node to release the device until it does. */
  const askFor = (deviceId: DeviceId, epoch: number, nodeId: string) =>
    Effect.suspend(() => {
      const released = Deferred.makeUnsafe<void>()
      awaited.set(keyOf(deviceId, epoch), released)
      return messages.replaced(deviceId, epoch, nodeId).pipe(
        Effect.andThen(Effect.sleep(askEvery)),
        Effect.forever,
        Effect.raceFirst(Deferred.await(released)),
        Effect.ensuring(Effect.sync(() => awaited.delete(keyOf(deviceId, epoch))))
      )
    })

  const begin: HandOver["begin"] = (session, previous, nodeId) => {
    const { deviceId } = session.connection.device
    session.before = undefined
    const isReplaced = (later.get(session) ?? 0) > session.epoch
    const replaced = [...previous === undefined ? [] : [previous], ...isReplaced ? [session] : []]
    if (replaced.length === 0 && nodeId === undefined && !ending.has(deviceId)) return undefined
    return Effect.gen(function*() {
      // Their end goes on when the wait is over.
      for (const each of replaced) yield* Effect.forkIn(replace(each), scope, { startImmediately: true })
      const elsewhere = nodeId === undefined || isReplaced
        ? Effect.void
        : ends(deviceId, session.epoch, askFor(deviceId, session.epoch, nodeId))
      const ended = Effect.all([whileEnding(deviceId, session.epoch), elsewhere], {
        concurrency: "unbounded",
        discard: true
      })
      return Option.isSome(yield* Effect.timeoutOption(ended, waitTime))
    })
  }

  const heardReplaced = Effect.fnUntraced(function*(deviceId: DeviceId, epoch: number, nodeId: string) {
    for (let session = nodeSessions.current(deviceId); session !== undefined; session = session.before) {
      if (session.epoch === 0) later.set(session, Math.max(later.get(session) ?? 0, epoch))
      else if (session.epoch < epoch) yield* Effect.forkIn(replace(session), scope, { startImmediately: true })
    }
    yield* whileEnding(deviceId, epoch)
    yield* messages.released(deviceId, epoch, nodeId)
  })

  return {
    retire,
    replace,
    end,
    begin,
    heardReplaced: (deviceId, epoch, nodeId) =>
      Effect.asVoid(Effect.forkIn(heardReplaced(deviceId, epoch, nodeId), scope)),
    heardReleased: (deviceId, epoch) => {
      const released = awaited.get(keyOf(deviceId, epoch))
      if (released !== undefined) Deferred.doneUnsafe(released, Effect.void)
    }
  }
})
