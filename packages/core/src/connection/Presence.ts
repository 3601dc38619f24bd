/**
 * Keeps the stored status of devices true: online, offline, and since when
 * (docs/decisions/0008-presence.md).
 */
import { Cause, Clock, Context, Effect, Layer, PubSub, Schedule, Stream } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import type { DeviceId, DeviceIdentity } from "../device/Device.ts"
import { Reactions } from "../events/Reactions.ts"
import { Feed } from "../feed/Feed.ts"
import * as Batcher from "../kernel/Batcher.ts"
import { type StoreError, untilStored } from "../kernel/StoreError.ts"
import * as LapsedDevices from "./LapsedDevices.ts"
import { type PresenceChange, type PresenceOutcome, PresenceStore } from "./PresenceStore.ts"
import * as Sightings from "./Sightings.ts"
import { reactToOutcomes, type StatusChange, statusEvents } from "./StatusChange.ts"

export class Presence extends Context.Service<Presence, {
  /**
   * Stores that the device is online through this connection, in place of an
   * earlier one. `waiting`: as in `PresenceOutcome`; `replaced`: the device was
   * online already. Returns undefined if the device is disabled or deleted.
   */
  readonly online: (
    device: DeviceIdentity,
    connection: { readonly id: string; readonly ip: string }
  ) => Effect.Effect<{ readonly waiting: boolean; readonly replaced: boolean } | undefined, StoreError>
  /**
   * Stores that the connection has ended. Tries again while the store fails in a
   * way that can pass; logs any other failure. Without effect if the device has a
   * newer connection.
   */
  readonly offline: (device: DeviceIdentity, connectionId: string) => Effect.Effect<void>
  /**
   * Sets a device online for five minutes that has sent something without
   * holding a connection, and activates it. Without effect while the device holds
   * a connection.
   */
  readonly markSeen: (device: DeviceIdentity, ip: string) => Effect.Effect<void, StoreError>
  /** Sets those of the devices offline that are online without a connection. */
  readonly markOffline: (deviceIds: ReadonlyArray<DeviceId>) => Effect.Effect<void, StoreError>
  /** Returns the stored connection of each device that has one and is enabled. */
  readonly connectionsOf: PresenceStore["Service"]["connectionsOf"]
  /**
   * Emits when this node speaks again after a silence of 12 seconds or more:
   * other nodes may have set its devices offline.
   */
  readonly silences: Stream.Stream<void>
}>()("@device-cloud/core/connection/Presence") {
  /**
   * Stores every 3 seconds that this node is alive. Sets the devices of a node
   * offline that has been silent for 12 seconds, and those of this node when the
   * layer closes.
   */
  static readonly layer: Layer.Layer<Presence, StoreError, PresenceStore | Feed | NodeBus | Reactions> = Layer
    .effect(Presence, Effect.suspend(() => make))
}

/** Changes that may wait to be stored. */
const capacity = 8192
/** Changes in one transaction. */
const maxBatch = 1024

/** How often a node stores that it is alive. */
const heartbeatEvery = "3 seconds"
/** How long a node may be silent before its devices go offline, milliseconds. */
const silenceLimitMillis = 12_000

/** A change, with the device whose event it may become. */
interface Item {
  readonly device: DeviceIdentity
  readonly change: PresenceChange
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
  const lapsed = yield* LapsedDevices.make

  const commit = Effect.fnUntraced(function*(items: ReadonlyArray<Item>) {
    const outcomes = new Map<Item, PresenceOutcome>()
    for (const group of oncePerDevice(items)) {
      const changes = group.map(({ change, device }): StatusChange => ({
        device,
        at: change.at,
        status: statusOf[change._tag]
      }))
      const reactTo = yield* reactToOutcomes(reactions, changes)
      const recorded = yield* feed.commit(
        store.record(group.map(({ change }) => change), reactTo),
        (recorded) => statusEvents(changes, recorded)
      )
      if (reactTo !== undefined) reactions.wake()
      for (const [i, item] of group.entries()) outcomes.set(item, recorded[i]!)
    }
    return items.map((item) => outcomes.get(item)!)
  })

  const changes = yield* Batcher.make<Item, PresenceOutcome, StoreError>({
    capacity,
    maxBatch,
    commit,
    isolates: ({ retryable }) => !retryable
  })

  const online = Effect.fnUntraced(function*(
    device: DeviceIdentity,
    connection: { readonly id: string; readonly ip: string }
  ) {
    const at = yield* Clock.currentTimeMillis
    const { deviceId } = device
    const { id: connectionId, ip } = connection
    const change: PresenceChange = { _tag: "Online", deviceId, connectionId, nodeId, ip, at }
    const outcome = yield* changes.submit({ device, change })
    return outcome._tag === "Ignored"
      ? undefined
      : { waiting: outcome.waiting, replaced: outcome._tag === "Replaced" }
  })

  const offline = Effect.fnUntraced(function*(device: DeviceIdentity, connectionId: string) {
    const at = yield* Clock.currentTimeMillis
    const change: PresenceChange = { _tag: "Offline", deviceId: device.deviceId, connectionId, at }
    yield* changes.submit({ device, change }).pipe(
      untilStored,
      Effect.catchCause((cause) =>
        // An interrupt says that this service has closed: it has set all devices of the node offline.
        Cause.hasInterrupts(cause) ? Effect.void : Effect.logError("A device's status could not be stored", cause)
      )
    )
  })

  const sightings = yield* Sightings.make

  const markOffline = (deviceIds: ReadonlyArray<DeviceId>) => {
    sightings.forget(deviceIds)
    return lapsed.setUnconnectedOffline(deviceIds)
  }

  const silences = yield* Effect.acquireRelease(PubSub.sliding<void>(1), PubSub.shutdown)
  let lastBeat = yield* Clock.currentTimeMillis
  yield* store.heartbeat(nodeId, lastBeat)

  /** Sets the devices of nodes offline that stop or are silent, and forgets the nodes. */
  const release = (lapse: Parameters<PresenceStore["Service"]["forgetNodes"]>[0]) =>
    Effect.andThen(lapsed.setOffline(lapse), store.forgetNodes(lapse))

  const beat = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    yield* store.heartbeat(nodeId, now)
    if (now - lastBeat >= silenceLimitMillis) yield* PubSub.publish(silences, undefined)
    lastBeat = now
    yield* sightings.prolong
    yield* lapsed.setOffline({ _tag: "SeenUntil", now })
    yield* release({ _tag: "NodeSilent", since: now - silenceLimitMillis })
  })

  yield* beat.pipe(
    Effect.catch((error) => Effect.logWarning("The node could not say that it is alive", error)),
    Effect.repeat(Schedule.spaced(heartbeatEvery)),
    Effect.forkScoped
  )

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
    silences: Stream.fromPubSub(silences)
  })
})
