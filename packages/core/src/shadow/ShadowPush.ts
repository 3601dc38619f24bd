/**
 * Tells connected devices what is desired of them, on whichever node they are. A
 * device whose software does not listen to its shadow yet gets the newest state once
 * it does (docs/decisions/0062-when-devices-listen.md).
 */
import { Clock, Effect, Option, Schema, Semaphore } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import type { DeviceSession } from "../connection/DeviceSession.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import { PresenceStore } from "../connection/PresenceStore.ts"
import { DeviceId } from "../device/Device.ts"
import { untilStored } from "../kernel/StoreError.ts"
import { delta, type Shadow } from "./Shadow.ts"
import { shadowControl } from "./ShadowDocument.ts"
import { ShadowStore } from "./ShadowStore.ts"

/** Tells devices that are connected to this node. */
export const make = Effect.gen(function*() {
  const sessions = yield* DeviceSessions
  const store = yield* ShadowStore
  const runFork = Effect.runForkWith(yield* Effect.context<never>())

  /** Sends the desired values of `shadow` to its device: now, or as they are when the device begins to listen. */
  const push = (deviceId: DeviceId, shadow: Shadow): Effect.Effect<void> =>
    Effect.suspend(() => {
      const session = sessions.session(deviceId)
      if (session === undefined) return Effect.void
      const listens = session.connection.hearsShadow?.(() => void runFork(begin(deviceId))) ?? true
      return listens ? Effect.asVoid(sessions.deliver(deviceId, shadowControl(shadow))) : Effect.void
    })

  /**
   * Sends what is desired of a device if it has not reported that. What has changed
   * meanwhile is sent again: the device may have been told of it before.
   */
  const pushDifference = Effect.fnUntraced(function*(deviceId: DeviceId) {
    let told: string | undefined
    while (true) {
      const shadow = Option.getOrUndefined(yield* untilStored(store.get(deviceId)))
      if (shadow === undefined) return
      const now = yield* Clock.currentTimeMillis
      const desired = JSON.stringify(shadow.desired)
      if (told === undefined ? Object.keys(delta(shadow, now)).length === 0 : told === desired) return
      told = desired
      yield* push(deviceId, shadow)
    }
  })

  const begin = (deviceId: DeviceId) =>
    Effect.catchCause(
      pushDifference(deviceId),
      (cause) => Effect.logError("A device could not be told what is desired", cause)
    )

  return { push, pushDifference }
})

/** What is desired of a device has changed on another node than its owner's: so many times by now. */
const ShadowDesired = NodeBus.channel(
  "shadow/desired",
  Schema.Struct({ deviceId: DeviceId, desiredChanges: Schema.Int })
)

/** How many changes a session has been told of, or finds when it is attached, and its turn to be told. */
class Told {
  changes = 0
  #turn: Semaphore.Semaphore | undefined

  /** Most sessions are never told of a change. */
  get turn(): Semaphore.Semaphore {
    return this.#turn ??= Semaphore.makeUnsafe(1)
  }
}

/**
 * Returns a function that sends what is desired of a device to it, through the node
 * that it is connected to: by a notice, or when that node next compares its sessions
 * with the store. Call it after each change. Requests and notices come in another order
 * than the changes: what is sent is the newest state, read again, one message after the
 * other, so that the last one is never older than another.
 */
export const makeAnywhere = Effect.gen(function*() {
  const sessions = yield* DeviceSessions
  const presence = yield* PresenceStore
  const store = yield* ShadowStore
  const { nodeId } = yield* NodeBus
  const channel = yield* ShadowDesired
  const { push } = yield* make
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const all = new WeakMap<DeviceSession, Told>()

  const toldOf = (session: DeviceSession): Told => {
    const known = all.get(session)
    if (known !== undefined) return known
    const told = new Told()
    all.set(session, told)
    return told
  }

  const pushNewest = Effect.fnUntraced(function*(deviceId: DeviceId) {
    const found = yield* untilStored(store.get(deviceId))
    if (Option.isSome(found)) yield* push(deviceId, found.value)
  }, Effect.catchCause((cause) => Effect.logError("A device could not be told what is desired", cause)))

  /** Tells the device unless it knows so many changes. */
  const learn = (session: DeviceSession, desiredChanges: number) => {
    const told = toldOf(session)
    if (desiredChanges <= told.changes) return
    runFork(told.turn.withPermit(Effect.suspend(() => {
      if (desiredChanges <= told.changes) return Effect.void
      told.changes = desiredChanges
      return pushNewest(session.connection.device.deviceId)
    })))
  }

  yield* sessions.listen({
    attached: (session, { desiredChanges }) => {
      const told = toldOf(session)
      told.changes = Math.max(desiredChanges, told.changes)
    },
    swept: (session, { desiredChanges }) => learn(session, desiredChanges)
  })
  yield* channel.subscribe({
    heard: ({ desiredChanges, deviceId }) =>
      Effect.sync(() => {
        const session = sessions.session(deviceId)
        if (session !== undefined) learn(session, desiredChanges)
      }),
    missed: Effect.void
  })

  return Effect.fnUntraced(function*(deviceId: DeviceId) {
    const noted = yield* presence.noteDesired(deviceId)
    if (noted?.nodeId === undefined) return
    const { desiredChanges, nodeId: owner } = noted
    if (owner !== nodeId) return yield* channel.publish([{ deviceId, desiredChanges }], owner)
    const session = sessions.session(deviceId)
    if (session !== undefined) learn(session, desiredChanges)
  }, Effect.catch((error) => Effect.logWarning("A device could not be told what is desired", error)))
})
