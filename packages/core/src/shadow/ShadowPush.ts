/**
 * Tells connected devices what is desired of them. A device whose software does not
 * listen to its shadow yet gets the newest state once it does
 * (docs/decisions/0062-when-devices-listen.md).
 */
import { Effect, Option } from "effect"
import type { DeviceSession } from "../connection/DeviceSession.ts"
import { DeviceSessions } from "../connection/DeviceSessions.ts"
import type { DeviceId } from "../device/Device.ts"
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
    if (Object.keys(delta(found.value)).length > 0) yield* sessions.deliver(deviceId, shadowControl(found.value))
  }, Effect.catchCause((cause) => Effect.logError("A device could not be told what is desired", cause)))

  return (deviceId: DeviceId, shadow: Shadow): Effect.Effect<void> =>
    Effect.suspend(() => {
      const session = sessions.session(deviceId)
      if (session === undefined) return Effect.void
      const listens = session.connection.hearsShadow?.(() => void runFork(sendNewest(session, deviceId))) ?? true
      return listens ? Effect.asVoid(sessions.deliver(deviceId, shadowControl(shadow))) : Effect.void
    })
})
