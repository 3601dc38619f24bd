/**
 * Compares the sessions of this node with their owners in the store: again and
 * again, after notices of other nodes were lost, and after other nodes have thought
 * that this one is dead.
 */
import { Array, Effect } from "effect"
import type { DeviceId, DeviceIdentity } from "../device/Device.ts"
import { untilStored } from "../kernel/StoreError.ts"
import { close, type DeviceSession, gaveUp } from "./DeviceSession.ts"
import type { NodeSessions, OwnedSession } from "./NodeSessions.ts"
import type { Owner } from "./PresenceStore.ts"
import type { Presence } from "./Presence.ts"

/** Devices that are looked up in the store at once. */
const lookUpLimit = 1000

/**
 * Sessions that have not come about, by device: the latest of each. The answer of the
 * store may have been lost, and the device is online without a session.
 */
export type Doubts = Map<DeviceId, DeviceSession>

/**
 * Hands over each session whose device has a later owner. Sets a device online again
 * that has no owner; closes its session if the device is disabled or has had a
 * later owner. Tells of the others what the store knows. Sets devices offline that
 * are online through a connection of `doubts`. Tries again while the store fails in a
 * way that can pass; logs any other failure. Run it once at a time.
 */
export const reconcile = Effect.fnUntraced(function*(
  presence: Presence["Service"],
  nodeSessions: NodeSessions,
  handOver: (session: OwnedSession) => Effect.Effect<void>,
  doubts: Doubts
) {
  const compare = Effect.fnUntraced(function*(session: OwnedSession, owner: Owner | undefined) {
    const { connection, id } = session
    if (!nodeSessions.isCurrent(session)) return
    if (owner?.connectionId === id) return yield* close(connection, "disabled")
    if (owner !== undefined) return owner.epoch > session.epoch ? yield* handOver(session) : undefined
    const claim = yield* untilStored(presence.online(session, session.epoch))
    if (claim === undefined) return yield* close(connection, "disabled")
    session.epoch = claim.epoch
    nodeSessions.sweep(session, claim)
    nodeSessions.reclaim(session)
  })

  /** Most sessions are the owners still: this is all that is done about them. Returns whether it is one. */
  const isOwner = (session: OwnedSession, owner: Owner | undefined): boolean => {
    if (owner?.connectionId !== session.id || !owner.enabled) return false
    if (nodeSessions.isCurrent(session)) nodeSessions.sweep(session, owner)
    return true
  }

  const ownersOf = (devices: ReadonlyArray<DeviceIdentity>) =>
    untilStored(presence.connectionsOf(devices.map(({ deviceId }) => deviceId)))

  for (const some of Array.chunksOf(nodeSessions.all().filter(({ epoch }) => epoch > 0), lookUpLimit)) {
    const owners = yield* ownersOf(some.map(({ connection }) => connection.device))
    const ownerOf = ({ connection }: OwnedSession) => owners.get(connection.device.deviceId)
    const others = some.filter((session) => !isOwner(session, ownerOf(session)))
    yield* Effect.forEach(others, (session) => compare(session, ownerOf(session)), {
      concurrency: "unbounded",
      discard: true
    })
  }
  for (const some of Array.chunksOf([...doubts.values()], lookUpLimit)) {
    const owners = yield* ownersOf(some.map(({ connection }) => connection.device))
    for (const doubt of some) {
      const { deviceId } = doubt.connection.device
      if (doubts.get(deviceId) === doubt) doubts.delete(deviceId)
      if (owners.get(deviceId)?.connectionId === doubt.id) yield* presence.offline(doubt, gaveUp)
    }
  }
}, Effect.catchCause((cause) => Effect.logError("Sessions could not be compared with the store", cause)))
