/**
 * Attaches the devices that are connected to the broker: the node that has a share
 * of the broker's connections is the owner of their devices.
 *
 * Notices about connections that last are not settled. When the node ends, the next
 * one of the share gets them again, at once and in order, and attaches the devices
 * before anybody has missed them.
 */
import {
  DeviceAuthenticator,
  deviceKey,
  type DeviceSession,
  DeviceSessions,
  type DisconnectReason,
  Outage,
  TraceRecorder,
  untilStored
} from "@device-cloud/core"
import { Effect, Option, Queue, Schedule, type Scope } from "effect"
import { type BrokerConnection, BrokerLink } from "./BrokerLink.ts"
import { CarriedConnection } from "./CarriedConnection.ts"

/** The connections of one share. */
export interface CarriedDevices {
  readonly connected: (connection: BrokerConnection) => void
  readonly disconnected: (id: string) => void
}

/** Notices that are handled together; those of one device one after the other. */
const maxTogether = 1000
/** How long a device stays online whose share this node has lost: another node attaches it before. */
const leaveAfter = "30 seconds"
/** How long a node that stops waits until others have attached its devices. */
const handOverTime = "3 seconds"
/** How often the cloud tries to end a connection at a broker that it does not reach. */
const endAgainAfter = "5 seconds"

/** A device at the broker, from the notice of its connection to the end of its session here. */
interface Carried {
  readonly connection: BrokerConnection
  readonly key: string
  device?: CarriedConnection
  session?: DeviceSession
  /** The connection has ended, or its share has gone to another node. */
  isOver?: boolean
}

type Notice =
  | { readonly _tag: "Connected"; readonly carried: Carried }
  | { readonly _tag: "Disconnected"; readonly carried: Carried }

/** Connections that the cloud ends at the broker, too. */
const endsAtBroker: ReadonlySet<DisconnectReason> = new Set(["disabled", "deleted", "revoked"])

/** Makes what opens a share. */
export const make = Effect.gen(function*() {
  const authenticator = yield* DeviceAuthenticator
  const sessions = yield* DeviceSessions
  const recorder = yield* TraceRecorder
  const link = yield* BrokerLink
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  /** Those whose sessions are here, of all shares. */
  const attached = new Set<Carried>()
  const outage = Outage.make("A connection to the broker could not be ended; trying again")

  const detach = Effect.fnUntraced(function*(carried: Carried) {
    carried.device?.end()
    if (!attached.delete(carried) || carried.session === undefined) return
    yield* sessions.detach(carried.session)
  })

  /** Ends what is here of a connection. */
  const leave = (carried: Carried) =>
    Effect.suspend(() => {
      carried.connection.settle()
      return detach(carried)
    })

  const disconnect = (carried: Carried) =>
    Effect.suspend(() =>
      carried.isOver === true
        ? Effect.void
        : Effect.andThen(link.disconnect(carried.connection.clientId), outage.over)
    ).pipe(
      Effect.tapError(outage.failed),
      Effect.retry(Schedule.spaced(endAgainAfter)),
      Effect.ignore
    )

  /**
   * Ends a connection here and at the broker. Its notice is not settled before: the
   * next node of the share ends what this one could not.
   */
  const expel = (carried: Carried) =>
    Effect.suspend(() => {
      runFork(Effect.andThen(disconnect(carried), Effect.sync(carried.connection.settle)))
      return detach(carried)
    })

  const attach = Effect.fnUntraced(function*(carried: Carried) {
    const { connection } = carried
    const found = yield* untilStored(authenticator.admitted(connection.device))
    if (Option.isNone(found)) return yield* expel(carried)
    const onClose = (reason: DisconnectReason) =>
      Effect.sync(() => {
        // What closes the connection does not wait until the end of the session is stored.
        runFork(endsAtBroker.has(reason) ? expel(carried) : leave(carried))
      })
    const device = new CarriedConnection(found.value, connection, { link, recorder, run: runFork, onClose })
    carried.device = device
    attached.add(carried)
    const session = yield* untilStored(
      Effect.catchTag(sessions.attach(device), "DeviceNotConnectable", () => Effect.succeed(undefined))
    ).pipe(Effect.onError(() => Effect.sync(() => attached.delete(carried))))
    if (session === undefined) return yield* expel(carried)
    carried.session = session
    // It was closed while it was attached.
    if (!attached.has(carried)) yield* sessions.detach(session)
  })

  const handle = (notices: ReadonlyArray<Notice>) =>
    Effect.forEach(
      notices,
      ({ _tag, carried }) =>
        (_tag === "Connected" ? attach(carried) : leave(carried)).pipe(
          Effect.catch((error) => Effect.logError("A device at the broker could not be attached", error)),
          Effect.catchDefect((defect) => Effect.logError("A device at the broker could not be attached", defect))
        ),
      { discard: true }
    )

  // Runs after the shares are given to others.
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => attached.size > 0 && link.nodes() > 1).pipe(
      Effect.repeat({ while: (waits) => waits, schedule: Schedule.spaced("20 millis") }),
      Effect.timeoutOption(handOverTime)
    )
  )

  return Effect.gen(function*(): Effect.fn.Return<CarriedDevices, never, Scope.Scope> {
    const queue = yield* Queue.unbounded<Notice>()
    /** The connections of this share, by their ids. */
    const known = new Map<string, Carried>()

    yield* Effect.gen(function*() {
      const notices = yield* Queue.takeBetween(queue, 1, maxTogether)
      const byDevice = new Map<string, Array<Notice>>()
      for (const notice of notices) {
        const { key } = notice.carried
        byDevice.set(key, [...byDevice.get(key) ?? [], notice])
      }
      yield* Effect.forEach(byDevice.values(), handle, { concurrency: "unbounded", discard: true })
    }).pipe(Effect.forever, Effect.forkScoped)

    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        for (const carried of known.values()) carried.isOver = true
        const left = Effect.forEach([...known.values()], leave, { concurrency: maxTogether, discard: true })
        runFork(Effect.andThen(Effect.sleep(leaveAfter), left))
      })
    )

    return {
      connected: (connection) => {
        const carried = { connection, key: deviceKey(connection.device) }
        known.set(connection.id, carried)
        Queue.offerUnsafe(queue, { _tag: "Connected", carried })
      },
      disconnected: (id) => {
        const carried = known.get(id)
        if (carried === undefined) return
        known.delete(id)
        carried.isOver = true
        Queue.offerUnsafe(queue, { _tag: "Disconnected", carried })
      }
    }
  })
})
