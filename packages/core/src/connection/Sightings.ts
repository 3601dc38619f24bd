/**
 * Devices that send something without holding a connection. Each message is a
 * sighting: the device is online for five minutes after the last one.
 */
import { Clock, Effect, Schema, type Scope } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import { DeviceId, type DeviceIdentity } from "../device/Device.ts"
import { Reactions } from "../events/Reactions.ts"
import { Feed } from "../feed/Feed.ts"
import * as Batcher from "../kernel/Batcher.ts"
import * as Outage from "../kernel/Outage.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { type PresenceOutcome, PresenceStore, type Sighting, sightingMillis } from "./PresenceStore.ts"
import type { DeviceConnection } from "./DeviceSession.ts"
import { linkOf, reactToOutcomes, type StatusChange, statusEvents } from "./StatusChange.ts"

/** How the device has sent it. */
export type Through = Pick<DeviceConnection, "transport" | "gateway">

export interface Sightings {
  /** Sets the device online for five minutes. Without effect while the device holds a connection. */
  readonly markSeen: (device: DeviceIdentity, ip: string, through?: Through) => Effect.Effect<void, StoreError>
  /**
   * Forgets sightings on all nodes: the next `markSeen` of these devices is stored. Call
   * it when something else than their time has ended them.
   */
  readonly forget: (deviceIds: ReadonlyArray<DeviceId>) => Effect.Effect<void>
  /**
   * Stores later ends for the devices that have sent something since their
   * stored sighting, if that sighting ends within 30 seconds. Call it more often
   * than that.
   */
  readonly prolong: Effect.Effect<void, StoreError>
  /** Stores all sightings of this node again, with what is left of their time. For a clock of the store that has jumped. */
  readonly renew: Effect.Effect<void, StoreError>
}

/** Sightings that may wait to be stored; more wait in `markSeen`. */
const capacity = 8192
/** Sightings in one transaction. */
const maxBatch = 1024

/** How long before its end a sighting is prolonged, milliseconds. */
const prolongMillis = 30_000

/** A sighting, with the device whose event it may become, and its end by the clock of this node. */
interface Seen {
  readonly device: DeviceIdentity
  readonly sighting: Sighting
  readonly through: Through | undefined
  /** Unix milliseconds. */
  readonly until: number
}

/** The sighting of the device has ended before its time: the device has connected, or was set offline. */
const SightingEnded = NodeBus.channel("connection/sighting-ended", Schema.Struct({ deviceId: DeviceId }))

/** The stored sighting of a device, and when it was seen last, Unix milliseconds. */
interface Known {
  readonly seen: Seen
  lastAt: number
  /** Something else than its time may have ended it. */
  isDoubtful: boolean
}

/**
 * Most sightings of a device are only remembered: one is stored at first, when
 * the address changes, after notices may have been lost, and by `prolong`.
 */
export const make: Effect.Effect<
  Sightings,
  never,
  Scope.Scope | PresenceStore | Feed | NodeBus | Reactions
> = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const store = yield* PresenceStore
  const feed = yield* Feed
  const { nodeId } = yield* NodeBus
  const reactions = yield* Reactions
  const channel = yield* SightingEnded
  const outage = Outage.make("Other nodes cannot be told of sightings that have ended")

  /** Stores sightings, at most one for each device. */
  const storeSeen = Effect.fnUntraced(function*(seen: ReadonlyArray<Seen>) {
    const changes = seen.map(({ device, sighting: { at, ip }, through }): StatusChange => ({
      device,
      at,
      status: "online",
      link: linkOf({ device, ip, ...through }, nodeId)
    }))
    const reactTo = yield* reactToOutcomes(reactions, changes)
    const outcomes = yield* feed.commit(
      store.markSeen(seen.map(({ sighting }) => sighting), reactTo),
      (outcomes) => statusEvents(changes, outcomes)
    )
    if (reactTo !== undefined) reactions.wake()
    return outcomes
  })

  const batcher = yield* Batcher.make<Seen, PresenceOutcome, StoreError>({
    capacity,
    maxBatch,
    commit: Effect.fnUntraced(function*(seen) {
      const latest = new Map(seen.map((each) => [each.sighting.deviceId, each]))
      const distinct = [...latest.values()]
      const outcomes = yield* storeSeen(distinct)
      const byDevice = new Map(distinct.map(({ sighting: { deviceId } }, i) => [deviceId, outcomes[i]!]))
      return seen.map(({ sighting: { deviceId } }) => byDevice.get(deviceId)!)
    }),
    isolates: ({ retryable }) => !retryable
  })

  /** The stored sighting of each device that this node has seen, and its last sighting (`lastAt`, Unix milliseconds). */
  const visible = new Map<DeviceId, Known>()

  const markSeen: Sightings["markSeen"] = (device, ip, through) =>
    Effect.suspend(() => {
      const at = clock.currentTimeMillisUnsafe()
      const { deviceId } = device
      const known = visible.get(deviceId)
      if (known?.isDoubtful === false && at < known.seen.until - prolongMillis && known.seen.sighting.ip === ip) {
        known.lastAt = at
        return Effect.void
      }
      const sighting: Sighting = { deviceId, ip, at, lasts: sightingMillis }
      const seen: Seen = { device, sighting, through, until: at + sightingMillis }
      return Effect.map(batcher.submit(seen), (outcome) => {
        if (outcome._tag === "Ignored") visible.delete(deviceId)
        else visible.set(deviceId, { seen, lastAt: at, isDoubtful: false })
      })
    })

  const forget: Sightings["forget"] = (deviceIds) =>
    Effect.suspend(() => {
      for (const deviceId of deviceIds) visible.delete(deviceId)
      return outage.attempted(channel.publish(deviceIds.map((deviceId) => ({ deviceId }))))
    })

  yield* channel.subscribe({
    heard: ({ deviceId }) => Effect.sync(() => void visible.delete(deviceId)),
    // The next message of each device is stored. The last one before it still counts.
    missed: Effect.sync(() => visible.forEach((known) => (known.isDoubtful = true)))
  })

  /** Stores the last sightings of devices in place of their stored ones. */
  const storeLast = Effect.fnUntraced(function*(known: ReadonlyArray<Known>, now: number) {
    const last = known.map(({ lastAt, seen }): Seen => {
      const until = lastAt + sightingMillis
      return { ...seen, sighting: { ...seen.sighting, at: lastAt, lasts: Math.max(until - now, 0) }, until }
    })
    for (const seen of last) {
      visible.set(seen.sighting.deviceId, { seen, lastAt: seen.sighting.at, isDoubtful: false })
    }
    for (let start = 0; start < last.length; start += maxBatch) yield* storeSeen(last.slice(start, start + maxBatch))
  })

  const prolong = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    const ending = [...visible.values()].filter(({ seen }) => seen.until - prolongMillis <= now)
    for (const { seen } of ending) visible.delete(seen.sighting.deviceId)
    yield* storeLast(ending.filter(({ lastAt, seen }) => lastAt > seen.sighting.at), now)
  })

  const renew = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    yield* storeLast([...visible.values()].filter(({ lastAt }) => lastAt + sightingMillis > now), now)
  })

  return { markSeen, forget, prolong, renew }
})
