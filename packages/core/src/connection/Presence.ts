/**
 * Keeps the stored status of devices true: online, offline, and since when
 * (docs/decisions/0008-presence.md).
 */
import { Cause, Clock, Context, Effect, Exit, Layer, PubSub, Stream } from "effect"
import { Troubles } from "../activity/Troubles.ts"
import { NodeBus } from "../cluster/NodeBus.ts"
import type { DeviceId } from "../device/Device.ts"
import { Reactions } from "../events/Reactions.ts"
import { Feed } from "../feed/Feed.ts"
import * as Batcher from "../kernel/Batcher.ts"
import * as Periodic from "../kernel/Periodic.ts"
import { type StoreError, untilStored } from "../kernel/StoreError.ts"
import type { DeviceSession } from "./DeviceSession.ts"
import { Flapping } from "./Flapping.ts"
import * as LapsedDevices from "./LapsedDevices.ts"
import {
  type Judge,
  type Lapse,
  type OwnerClaim,
  type PresenceChange,
  type PresenceOutcome,
  PresenceStore
} from "./PresenceStore.ts"
import { PresenceTimes } from "./PresenceTimes.ts"
import * as Sightings from "./Sightings.ts"
import { linkOf, reactToOutcomes, type StatusChange, statusEvents } from "./StatusChange.ts"

export class Presence extends Context.Service<Presence, {
  /**
   * Stores that the device is online through this connection, in place of an
   * earlier one. `resumes`: as in `PresenceChange`. Returns undefined if the device is
   * disabled or deleted, or has had a later owner than the connection that resumes.
   */
  readonly online: (session: DeviceSession, resumes?: number) => Effect.Effect<OwnerClaim | undefined, StoreError>
  /**
   * Stores that the connection has ended. Tries again while the store fails in a
   * way that can pass; logs any other failure. Without effect if the device has a
   * newer connection. `reason`: why it has ended, in a sentence for operators.
   */
  readonly offline: (session: DeviceSession, reason: string) => Effect.Effect<void>
  /**
   * Sets a device online for five minutes that has sent something without
   * holding a connection, and activates it. Without effect while the device holds
   * a connection.
   */
  readonly markSeen: Sightings.Sightings["markSeen"]
  /** Sets those of the devices offline that are online without a connection. `reason`: as above. */
  readonly markOffline: (deviceIds: ReadonlyArray<DeviceId>, reason: string) => Effect.Effect<void, StoreError>
  /** Returns the stored owner of each device that is connected. */
  readonly connectionsOf: PresenceStore["Service"]["connectionsOf"]
  /**
   * Sets the devices of a node offline whose process is known to have ended; a node
   * that is silent for another reason is waited for.
   */
  readonly nodeEnded: (nodeId: string) => Effect.Effect<void>
  /** Emits when this node speaks again after it was silent: other nodes may have set its devices offline. */
  readonly silences: Stream.Stream<void>
}>()("@device-cloud/core/connection/Presence") {
  /**
   * Stores every 2 seconds that this node is alive. Sets the devices of a node
   * offline that the store calls silent, and those of this node when the
   * layer closes. All of that goes by the clock of the store; see `PresenceTimes`.
   */
  static readonly layer: Layer.Layer<Presence, StoreError, PresenceStore | Feed | NodeBus | Reactions | Troubles> =
    Layer
      .effect(Presence, Effect.suspend(() => make))
}

/** Changes that may wait to be stored. */
const capacity = 8192
/** Changes in one transaction. */
const maxBatch = 1024

/** How long a heartbeat may take. The next one follows on another connection. */
const heartbeatTime = "3 seconds"

/** A change, with what its event says. */
interface Item extends Pick<StatusChange, "device" | "link" | "reason"> {
  readonly change: PresenceChange
}

/** Why devices go offline that hold no connection, or whose node does not say so itself. */
const lapseReasons = {
  SightingEnds: "nothing was heard from it for five minutes",
  NodeStops: "the server that held its connection has stopped",
  NodeSilent: "the server that held its connection was not heard any more"
}

/** Splits items into as few groups as possible: no group has a device twice, and each device keeps its order. */
const oncePerDevice = (items: ReadonlyArray<Item>): ReadonlyArray<ReadonlyArray<Item>> => {
  const groups: Array<Array<Item>> = []
  const groupsOf = new Map<DeviceId, number>()
  for (const item of items) {
    const { deviceId } = item.change
    const group = groupsOf.get(deviceId) ?? 0
    groupsOf.set(deviceId, group + 1)
    const itemsOfGroup = groups[group]
    if (itemsOfGroup === undefined) groups.push([item])
    else itemsOfGroup.push(item)
  }
  return groups
}

const statusOf = { Online: "online", Offline: "offline" } as const

const make = Effect.gen(function*() {
  const store = yield* PresenceStore
  const feed = yield* Feed
  const { nodeId } = yield* NodeBus
  const reactions = yield* Reactions
  const troubles = yield* Troubles
  const flapping = new Flapping()
  const lapsed = yield* LapsedDevices.make

  /** Tells of the device if its status changes too often. */
  const noteChange = ({ change: { at, deviceId }, device: { projectId } }: Item, outcome: PresenceOutcome) => {
    if (outcome._tag !== "Changed") return
    const changes = flapping.changed(deviceId, outcome.version, at)
    if (changes > 0) troubles.note(projectId, "flapping", deviceId, "", changes)
  }

  const commit = Effect.fnUntraced(function*(items: ReadonlyArray<Item>) {
    const outcomes = new Map<Item, PresenceOutcome>()
    for (const group of oncePerDevice(items)) {
      const changes = group.map(({ change, ...about }): StatusChange => ({
        ...about,
        at: change.at,
        status: statusOf[change._tag]
      }))
      const reactTo = yield* reactToOutcomes(reactions, changes)
      const recorded = yield* feed.commit(
        store.record(group.map(({ change }) => change), reactTo),
        (recorded) => statusEvents(changes, recorded)
      )
      if (reactTo !== undefined) reactions.wake()
      for (const [i, item] of group.entries()) {
        outcomes.set(item, recorded[i]!)
        noteChange(item, recorded[i]!)
      }
    }
    return items.map((item) => outcomes.get(item)!)
  })

  const changes = yield* Batcher.make<Item, PresenceOutcome, StoreError>({
    capacity,
    maxBatch,
    commit,
    isolates: ({ retryable }) => !retryable
  })

  const sightings = yield* Sightings.make

  const online: Presence["Service"]["online"] = Effect.fnUntraced(function*(session, resumes) {
    const at = yield* Clock.currentTimeMillis
    const { connection: { device, ip }, id: connectionId } = session
    const change: PresenceChange = {
      _tag: "Online",
      deviceId: device.deviceId,
      connectionId,
      nodeId,
      ip,
      at,
      ...resumes === undefined ? {} : { resumes }
    }
    const outcome = yield* changes.submit({ device, change, link: linkOf(session.connection, nodeId) })
    // The connection takes the place of a sighting.
    if (outcome._tag === "Replaced" && outcome.claim?.previous === undefined) {
      yield* sightings.forget([device.deviceId])
    }
    return outcome._tag === "Ignored" ? undefined : outcome.claim
  })

  const offline: Presence["Service"]["offline"] = Effect.fnUntraced(function*(session, reason) {
    const at = yield* Clock.currentTimeMillis
    const { connection: { device }, id: connectionId } = session
    const change: PresenceChange = { _tag: "Offline", deviceId: device.deviceId, connectionId, at }
    yield* changes.submit({ device, change, link: linkOf(session.connection, nodeId), reason }).pipe(
      untilStored,
      Effect.catchCause((cause) =>
        // An interrupt says that this service has closed: it has set all devices of the node offline.
        Cause.hasInterrupts(cause) ? Effect.void : Effect.logError("A device's status could not be stored", cause)
      )
    )
  })

  const markOffline: Presence["Service"]["markOffline"] = (deviceIds, reason) =>
    lapsed.setUnconnectedOffline(deviceIds, reason).pipe(
      // Of those whose answer is lost, each may be offline.
      Effect.onExit((exit) => sightings.forget(Exit.isSuccess(exit) ? exit.value : deviceIds)),
      Effect.asVoid
    )

  const times = yield* PresenceTimes
  const judge: Judge = { nodeId, limits: times }
  const silences = yield* Effect.acquireRelease(PubSub.sliding<void>(1), PubSub.shutdown)
  yield* store.heartbeat(nodeId, times)

  /** The node was silent, or the clock of the store has jumped: before another node may judge, its sightings have their ends again. */
  let isHeardAgain = false

  const beat = store.heartbeat(nodeId, times).pipe(
    Effect.timeout(heartbeatTime),
    Effect.flatMap(({ wasSilent }) => {
      if (!wasSilent) return Effect.void
      isHeardAgain = true
      return PubSub.publish(silences, undefined)
    }),
    Effect.asVoid,
    Effect.catch((error) => Effect.logWarning("The node could not say that it is alive", error))
  )

  /** Sets the devices of a node offline that stops or is silent, and forgets the node. */
  const release = (lapse: Lapse & { readonly _tag: "NodeStops" | "NodeSilent" }) =>
    Effect.andThen(lapsed.setOffline(lapse, lapseReasons[lapse._tag]), store.forgetNode(lapse))

  const releaseSilent = store.silentNodes(judge).pipe(
    Effect.flatMap(
      Effect.forEach((silent) => release({ _tag: "NodeSilent", nodeId: silent, judge }), { discard: true })
    ),
    Effect.catch((error) => Effect.logWarning("Silent nodes could not be looked for", error))
  )

  const renewSightings = Effect.suspend(() => {
    if (!isHeardAgain) return Effect.void
    isHeardAgain = false
    return Effect.onError(sightings.renew, () => Effect.sync(() => void (isHeardAgain = true)))
  })

  const endSightings = Effect.andThen(renewSightings, sightings.prolong).pipe(
    Effect.andThen(lapsed.setOffline({ _tag: "SightingEnds", judge }, lapseReasons.SightingEnds)),
    Effect.catch((error) => Effect.logWarning("Sightings could not be looked after", error))
  )

  // Each in a fiber of its own: what takes long never delays a heartbeat.
  yield* Periodic.every(times.beat)(beat)
  yield* Periodic.every(times.beat / 2)(releaseSilent)
  yield* Periodic.every(times.beat)(endSightings)

  yield* Effect.addFinalizer(() =>
    release({ _tag: "NodeStops", nodeId }).pipe(
      Effect.timeoutOption("2 seconds"),
      Effect.catch((error) => Effect.logWarning("The node could not release its devices", error))
    )
  )

  return Presence.of({
    online,
    offline,
    markSeen: sightings.markSeen,
    markOffline,
    connectionsOf: store.connectionsOf,
    nodeEnded: (ended) =>
      release({ _tag: "NodeStops", nodeId: ended }).pipe(
        // Its silence does the same later.
        Effect.catch((error) => Effect.logWarning("The devices of a node that has ended could not be released", error))
      ),
    silences: Stream.fromPubSub(silences)
  })
})
