/**
 * Compares the sessions of this node with their owners in the store: again and
 * again, after notices of other nodes were lost, and after other nodes have thought
 * that this one is dead.
 */
import { Effect } from "effect"
import { untilStored } from "../kernel/StoreError.ts"
import type { NodeSessions, OwnedSession } from "./NodeSessions.ts"
import type { Owner } from "./PresenceStore.ts"
import type { Presence } from "./Presence.ts"

/** Sessions that are compared with the store at once. */
const reconcileLimit = 1000

/**
 * Hands over each session whose device has a later owner. Sets a device online again
 * that has no owner; closes its session if the device is disabled or has had a
 * later owner. Tells of the others what the store knows. Tries again while the store
 * fails in a way that can pass; logs any other failure. Run it once at a time.
 */
export const reconcile = Effect.fnUntraced(function*(
  presence: Presence["Service"],
  nodeSessions: NodeSessions,
  handOver: (session: OwnedSession) => Effect.Effect<void>
) {
  const compare = Effect.fnUntraced(function*(session: OwnedSession, owner: Owner | undefined) {
    const { connection, id } = session
    if (!nodeSessions.isCurrent(session)) return
    if (owner?.connectionId === id) {
      return owner.enabled ? nodeSessions.sweep(session, owner) : yield* connection.close("disabled")
    }
    if (owner !== undefined) return owner.epoch > session.epoch ? yield* handOver(session) : undefined
    const claim = yield* untilStored(
      presence.online(connection.device, { id, ip: connection.ip, resumes: session.epoch })
    )
    if (claim === undefined) return yield* connection.close("disabled")
    session.epoch = claim.epoch
    nodeSessions.sweep(session, claim)
  })

  const sessions = nodeSessions.all().filter(({ epoch }) => epoch > 0)
  for (let start = 0; start < sessions.length; start += reconcileLimit) {
    const some = sessions.slice(start, start + reconcileLimit)
    const owners = yield* untilStored(
      presence.connectionsOf(some.map(({ connection }) => connection.device.deviceId))
    )
    yield* Effect.forEach(some, (session) => compare(session, owners.get(session.connection.device.deviceId)), {
      concurrency: "unbounded",
      discard: true
    })
  }
}, Effect.catchCause((cause) => Effect.logError("Sessions could not be compared with the store", cause)))
