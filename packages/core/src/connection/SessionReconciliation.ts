/**
 * Compares the sessions of this node with the connections in the store: after
 * notices of other nodes were lost, after this node was silent for too long, and
 * when a device has connected elsewhere.
 */
import { Effect } from "effect"
import { untilStored } from "../kernel/StoreError.ts"
import type { DeviceSession } from "./DeviceSession.ts"
import type { NodeSessions } from "./NodeSessions.ts"
import type { Presence } from "./Presence.ts"

/** Sessions that are compared with the store at once. */
const reconcileLimit = 1000

/**
 * Closes each session whose device has another connection in the store. Sets a
 * device online again that has no connection in the store; closes its session if
 * the device was disabled or deleted. Tries again while the store fails in a way
 * that can pass; logs any other failure.
 */
export const reconcile = Effect.fnUntraced(function*(
  presence: Presence["Service"],
  nodeSessions: NodeSessions,
  sessions: ReadonlyArray<DeviceSession>
) {
  for (let start = 0; start < sessions.length; start += reconcileLimit) {
    const some = sessions.slice(start, start + reconcileLimit)
    const stored = yield* untilStored(
      presence.connectionsOf(some.map(({ connection }) => connection.device.deviceId))
    )
    for (const session of some) {
      const { connection, id } = session
      const connectionId = stored.get(connection.device.deviceId)
      if (connectionId === id || !nodeSessions.isCurrent(session)) continue
      if (connectionId !== undefined) yield* connection.close("replaced")
      else if ((yield* untilStored(presence.online(connection.device, { id, ip: connection.ip }))) === undefined) {
        yield* connection.close("disabled")
      }
    }
  }
}, Effect.catchCause((cause) => Effect.logError("Sessions could not be compared with the store", cause)))
