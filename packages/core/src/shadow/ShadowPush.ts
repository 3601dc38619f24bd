/**
 * Tells connected devices what is desired of them, on whichever node they are. A
 * device whose software does not listen to its shadow yet gets the newest state once
 * it does (docs/decisions/0062-when-devices-listen.md).
 */
import { Clock, Effect, Option, Schema } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import type { DeviceSession } from "../connection/DeviceSession.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import { PresenceStore } from "../connection/PresenceStore.ts"
import { DeviceId } from "../device/Device.ts"
import { untilStored } from "../kernel/StoreError.ts"
import { delta, type Shadow } from "./Shadow.ts"
import { shadowControl } from "./ShadowDocument.ts"
import { ShadowStore } from "./ShadowStore.ts"

/**
 * Returns a function that sends the desired values of `shadow` to its device if that
 * is connected to this node: now, or as they are when the device begins to listen.
 */
export const make = Effect.gen(function*() {
  const sessions = yield* DeviceSessions
  const store = yield* ShadowStore
  const runFork = Effect.runForkWith(yield* Effect.context<never>())

  const sendNewest = Effect.fnUntraced(function*(session: DeviceSession, deviceId: DeviceId) {
    const found = yield* untilStored(store.get(deviceId))
    if (Option.isNone(found) || sessions.session(deviceId) !== session) return
    const now = yield* Clock.currentTimeMillis
    if (Object.keys(delta(found.value, now)).length > 0) yield* sessions.deliver(deviceId, shadowControl(found.value))
  }, Effect.catchCause((cause) => Effect.logError("A device could not be told what is desired", cause)))

  return (deviceId: DeviceId, shadow: Shadow): Effect.Effect<void> =>
    Effect.suspend(() => {
      const session = sessions.session(deviceId)
      if (session === undefined) return Effect.void
      const listens = session.connection.hearsShadow?.(() => void runFork(sendNewest(session, deviceId))) ?? true
      return listens ? Effect.asVoid(sessions.deliver(deviceId, shadowControl(shadow))) : Effect.void
    })
})

/** What is desired of a device has changed on another node than its owner's: so many times by now. */
const ShadowDesired = NodeBus.channel(
  "shadow/desired",
  Schema.Struct({ deviceId: DeviceId, desiredChanges: Schema.Int })
)

/**
 * Returns a function that sends what has become desired of a device to it, through
 * the node that it is connected to: by a notice, or when that node next compares its
 * sessions with the store. Call it after each change.
 */
export const makeAnywhere = Effect.gen(function*() {
  const sessions = yield* DeviceSessions
  const presence = yield* PresenceStore
  const store = yield* ShadowStore
  const { nodeId } = yield* NodeBus
  const channel = yield* ShadowDesired
  const push = yield* make
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  /** How many changes the device has been told of, or finds when it is attached. */
  const told = new WeakMap<DeviceSession, number>()

  const pushNewest = Effect.fnUntraced(function*(deviceId: DeviceId) {
    const found = yield* untilStored(store.get(deviceId))
    if (Option.isSome(found)) yield* push(deviceId, found.value)
  }, Effect.catchCause((cause) => Effect.logError("A device could not be told what is desired", cause)))

  /** Tells the device unless it knows so many changes. */
  const learn = (session: DeviceSession, desiredChanges: number) => {
    if (desiredChanges <= (told.get(session) ?? 0)) return
    told.set(session, desiredChanges)
    runFork(pushNewest(session.connection.device.deviceId))
  }

  yield* sessions.listen({
    attached: (session, { desiredChanges }) => void told.set(session, Math.max(desiredChanges, told.get(session) ?? 0)),
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

  return Effect.fnUntraced(function*(deviceId: DeviceId, shadow: Shadow) {
    const noted = yield* presence.noteDesired(deviceId)
    if (noted?.nodeId === undefined) return
    const { desiredChanges, nodeId: owner } = noted
    const session = sessions.session(deviceId)
    if (owner !== nodeId) return yield* channel.publish([{ deviceId, desiredChanges }], owner)
    if (session !== undefined) told.set(session, Math.max(desiredChanges, told.get(session) ?? 0))
    yield* push(deviceId, shadow)
  }, Effect.catch((error) => Effect.logWarning("A device could not be told what is desired", error)))
})
