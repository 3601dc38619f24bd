/**
 * Keeps the stored status of devices true: online, offline, and since when.
 */
import { Array, Cause, Clock, Context, Effect, Layer, PubSub, Schedule, Stream } from "effect"
import type { DomainEvent } from "../events/DomainEvent.ts"
import { EventBus } from "../events/EventBus.ts"
import { type Reaction, Reactions } from "../events/Reactions.ts"
import * as Batcher from "../kernel/Batcher.ts"
import { Identifiers } from "../kernel/Identifiers.ts"
import { type StoreError, untilStored } from "../kernel/StoreError.ts"
import type { DeviceId, DeviceIdentity } from "../device/Device.ts"
import {
  type Lapse,
  type LostDevice,
  type PresenceChange,
  type PresenceOutcome,
  PresenceStore,
  type Sighting
} from "./PresenceStore.ts"

export class Presence extends Context.Service<Presence, {
  /**
   * Stores that the device is online through this connection, in place of an
   * earlier one. `waiting`: something waits for it (`PresenceOutcome`);
   * `replaced`: it was online already. Undefined: the device has been disabled
   * or deleted.
   */
  readonly online: (
    device: DeviceIdentity,
    connection: { readonly id: string; readonly ip: string }
  ) => Effect.Effect<{ readonly waiting: boolean; readonly replaced: boolean } | undefined, StoreError>
  /** Stores that the connection has ended, as soon as the store allows; without effect when a newer one counts. */
  readonly offline: (device: DeviceIdentity, connectionId: string) => Effect.Effect<void>
  /**
   * The device has said something without holding a connection: it is online
   * for five minutes, and activated. Without effect while it holds one.
   */
  readonly markSeen: (device: DeviceIdentity, ip: string) => Effect.Effect<void, StoreError>
  /** Devices that are online without a connection are so no more. */
  readonly markOffline: (deviceIds: ReadonlyArray<DeviceId>) => Effect.Effect<void, StoreError>
  readonly connectionsOf: PresenceStore["Service"]["connectionsOf"]
  /** This node was silent for so long that others may have set its devices offline. */
  readonly silences: Stream.Stream<void>
}>()("@device-cloud/core/connection/Presence") {
  /**
   * The node says every 3 seconds that it is alive. Devices of a node that has
   * been silent for 12 seconds go offline.
   */
  static readonly layer: Layer.Layer<Presence, StoreError, PresenceStore | EventBus | Identifiers | Reactions> = Layer
    .effect(Presence, Effect.suspend(() => make))
}

/** Changes that may wait to be stored. */
const capacity = 8192
/** Changes in one transaction. */
const maxBatch = 1024

/** How often a node says that it is alive, and how long it may be silent before its devices count as offline. */
const heartbeatEvery = "3 seconds"
const silenceLimitMillis = 12_000
/** Devices of a lost node that go offline in one transaction. */
const releaseLimit = 1000

/** How long a device that holds no connection counts as online after it has said something, milliseconds. */
const sightingMillis = 300_000
/** How long before its end a sighting is prolonged when the device has said more, milliseconds. */
const prolongMillis = 30_000

/** A change, with the device whose event it may become. */
interface Item {
  readonly device: DeviceIdentity
  readonly change: PresenceChange
}

/** The same items in as few groups as possible, with no device twice in a group and the order of each device kept. */
const oncePerDevice = (items: ReadonlyArray<Item>): ReadonlyArray<ReadonlyArray<Item>> => {
  const groups: Array<Array<Item>> = []
  const seen = new Map<DeviceId, number>()
  for (const item of items) {
    const { deviceId } = item.change
    const group = seen.get(deviceId) ?? 0
    seen.set(deviceId, group + 1)
    const itemsOfGroup = groups[group]
    if (itemsOfGroup === undefined) groups.push([item])
    else itemsOfGroup.push(item)
  }
  return groups
}

/** A device that was seen without a connection. */
interface Seen {
  readonly device: DeviceIdentity
  readonly sighting: Sighting
}

/** A change of the status of a device. */
interface StatusChange {
  readonly device: DeviceIdentity
  /** Unix milliseconds. */
  readonly at: number
  readonly status: "online" | "offline"
}

const statusOf = { Online: "online", Offline: "offline" } as const

const make = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const store = yield* PresenceStore
  const events = yield* EventBus
  const nodeId = yield* (yield* Identifiers).nodeId
  const reactions = yield* Reactions

  const productsOf = (devices: ReadonlyArray<DeviceIdentity>) => [
    ...new Set(devices.map(({ productKey }) => productKey))
  ]

  const reactToStatus = ({ at, device, status }: StatusChange): ReadonlyArray<Reaction> => {
    const { deviceId, deviceName, productKey } = device
    return reactions.reactTo(device.projectId, {
      _tag: "StatusChanged",
      device: { deviceId, productKey, deviceName },
      at,
      status
    })
  }

  /** The reactions to what is recorded; undefined: nothing can react. */
  const reactingTo = Effect.fnUntraced(function*(recorded: ReadonlyArray<StatusChange>) {
    const devices = recorded.map(({ device }) => device)
    yield* reactions.load(productsOf(devices))
    return devices.some((device) => reactions.watches("StatusChanged", device))
      ? (outcomes: ReadonlyArray<PresenceOutcome>) =>
        recorded.flatMap((change, place) => outcomes[place]!._tag === "Changed" ? reactToStatus(change) : [])
      : undefined
  })

  const commit = Effect.fnUntraced(function*(items: ReadonlyArray<Item>) {
    const outcomes = new Map<Item, PresenceOutcome>()
    const happened: Array<DomainEvent> = []
    for (const group of oncePerDevice(items)) {
      const reactTo = yield* reactingTo(
        group.map(({ change, device }) => ({ device, at: change.at, status: statusOf[change._tag] }))
      )
      const recorded = yield* store.record(group.map(({ change }) => change), reactTo)
      if (reactTo !== undefined) reactions.wake()
      for (let i = 0; i < group.length; i++) {
        const item = group[i]!
        const { change, device } = item
        const outcome = recorded[i]!
        outcomes.set(item, outcome)
        if (outcome._tag !== "Changed") continue
        const status = statusOf[change._tag]
        happened.push({ _tag: "DeviceStatusChanged", device, at: change.at, status, version: outcome.version })
      }
    }
    yield* events.publish(happened)
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
        // After the end of this service: the node has released all its devices.
        Cause.hasInterrupts(cause) ? Effect.void : Effect.logError("A device's status could not be stored", cause)
      )
    )
  })

  /** Sets at most `releaseLimit` devices offline to which the lapse applies. False: there may be more. */
  const endSome = Effect.fnUntraced(function*(lapse: Lapse) {
    const devices = yield* store.lapsed(lapse, releaseLimit)
    if (devices.length === 0) return true
    yield* reactions.load(productsOf(devices))
    const at = yield* Clock.currentTimeMillis
    const lost = yield* store.markOffline({
      deviceIds: devices.map(({ deviceId }) => deviceId),
      lapse,
      at,
      ...devices.some((device) => reactions.watches("StatusChanged", device))
        ? {
          reactTo: (lost: ReadonlyArray<LostDevice>) =>
            lost.flatMap(({ device }) => reactToStatus({ device, at, status: "offline" }))
        }
        : {}
    })
    if (lost.length > 0) reactions.wake()
    yield* events.publish(
      lost.map(({ device, version }) => ({ _tag: "DeviceStatusChanged", device, at, status: "offline", version }))
    )
    return lost.length < releaseLimit
  })

  const endAll = (lapse: Lapse): Effect.Effect<void, StoreError> =>
    Effect.flatMap(endSome(lapse), (isDone) => isDone ? Effect.void : endAll(lapse))

  const release = (lapse: Parameters<PresenceStore["Service"]["forgetNodes"]>[0]) =>
    Effect.andThen(endAll(lapse), store.forgetNodes(lapse))

  /** Stores that devices are seen. */
  const markAllSeen = Effect.fnUntraced(function*(seen: ReadonlyArray<Seen>) {
    const reactTo = yield* reactingTo(seen.map(({ device, sighting: { at } }) => ({ device, at, status: "online" })))
    const outcomes = yield* store.markSeen(seen.map(({ sighting }) => sighting), reactTo)
    if (reactTo !== undefined) reactions.wake()
    yield* publishChanges(seen, outcomes)
    return outcomes
  })

  const publishChanges = (seen: ReadonlyArray<Seen>, outcomes: ReadonlyArray<PresenceOutcome>) =>
    events.publish(seen.flatMap(({ device, sighting: { at } }, i): ReadonlyArray<DomainEvent> => {
      const outcome = outcomes[i]!
      return outcome._tag === "Changed"
        ? [{ _tag: "DeviceStatusChanged", device, at, status: "online", version: outcome.version }]
        : []
    }))

  const sightings = yield* Batcher.make<Seen, PresenceOutcome, StoreError>({
    capacity,
    maxBatch,
    commit: Effect.fnUntraced(function*(seen) {
      const latest = new Map(seen.map((each) => [each.sighting.deviceId, each]))
      const distinct = [...latest.values()]
      const outcomes = yield* markAllSeen(distinct)
      const byDevice = new Map(distinct.map(({ sighting: { deviceId } }, i) => [deviceId, outcomes[i]!]))
      return seen.map(({ sighting: { deviceId } }) => byDevice.get(deviceId)!)
    }),
    isolates: ({ retryable }) => !retryable
  })

  /** Devices that are online without a connection, seen by this node. */
  const visible = new Map<DeviceId, { seen: Seen; lastAt: number }>()

  const markSeen = (device: DeviceIdentity, ip: string) =>
    Effect.suspend(() => {
      const at = clock.currentTimeMillisUnsafe()
      const { deviceId } = device
      const known = visible.get(deviceId)
      if (known !== undefined && at < known.seen.sighting.until - prolongMillis && known.seen.sighting.ip === ip) {
        known.lastAt = at
        return Effect.void
      }
      const seen: Seen = { device, sighting: { deviceId, ip, at, until: at + sightingMillis } }
      return Effect.map(sightings.submit(seen), (outcome) => {
        if (outcome._tag === "Ignored") visible.delete(deviceId)
        else visible.set(deviceId, { seen, lastAt: at })
      })
    })

  const markOffline = (deviceIds: ReadonlyArray<DeviceId>) => {
    for (const deviceId of deviceIds) visible.delete(deviceId)
    return Effect.forEach(
      Array.chunksOf(deviceIds, releaseLimit),
      (some) => endSome({ _tag: "NotConnected", deviceIds: some }),
      { discard: true }
    )
  }

  /** Stores that devices have said more since their sightings were stored, before these end. */
  const prolong = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    const ending = [...visible.values()].filter(({ seen }) => seen.sighting.until - prolongMillis <= now)
    const prolonged = ending.flatMap(({ lastAt, seen: { device, sighting } }) =>
      lastAt > sighting.at ? [{ device, sighting: { ...sighting, at: lastAt, until: lastAt + sightingMillis } }] : []
    )
    for (const { seen } of ending) visible.delete(seen.sighting.deviceId)
    for (const seen of prolonged) visible.set(seen.sighting.deviceId, { seen, lastAt: seen.sighting.at })
    for (let start = 0; start < prolonged.length; start += maxBatch) {
      const seen = prolonged.slice(start, start + maxBatch)
      yield* markAllSeen(seen)
    }
  })

  const silences = yield* Effect.acquireRelease(PubSub.sliding<void>(1), PubSub.shutdown)
  let lastBeat = yield* Clock.currentTimeMillis
  yield* store.heartbeat(nodeId, lastBeat)

  const beat = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    yield* store.heartbeat(nodeId, now)
    if (now - lastBeat >= silenceLimitMillis) yield* PubSub.publish(silences, undefined)
    lastBeat = now
    yield* prolong
    yield* endAll({ _tag: "SeenUntil", now })
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
    markSeen,
    markOffline,
    connectionsOf: store.connectionsOf,
    silences: Stream.fromPubSub(silences)
  })
})
