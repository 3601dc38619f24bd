/**
 * How workers share a subscription: by shards, each with the place up to which its
 * events are acknowledged (docs/decisions/0081-subscriptions.md). Pure: a store
 * applies these functions to what it has.
 */
import type { DomainEvent } from "../events/DomainEvent.ts"
import { isFeedPlace } from "../feed/FeedPlace.ts"
import type { FeedPlace } from "../feed/FeedStore.ts"
import { maxWorkers } from "./Subscription.ts"

/** How many shards a subscription has. */
export const shardCount = 16

/** A part of the devices. */
export interface Shard {
  /** All events up to here are acknowledged. */
  readonly place: FeedPlace
  /** When it was given to its worker, or moved: the number of that step. */
  readonly epoch: number
  /** Null: nobody has it. */
  readonly worker: string | null
}

export interface Worker {
  readonly worker: string
  /** Until when its lease lasts, Unix milliseconds of the store's clock. */
  readonly until: number
}

/** What has become of a subscription. */
export interface Progress {
  /** Grows with each step that gives shards to workers or moves them. */
  readonly epoch: number
  /** {@link shardCount} of them. */
  readonly shards: ReadonlyArray<Shard>
  readonly workers: ReadonlyArray<Worker>
  /** What is wrong with the webhook; null: nothing. */
  readonly failure: PushFailure | null
}

/** Attempts to push that have failed, and no later one that went well. Times are Unix milliseconds. */
export interface PushFailure {
  /** When the first one failed. */
  readonly since: number
  readonly attempts: number
  /** When the next one is due. */
  readonly nextAt: number
  /** When pushing was paused; null: it goes on. */
  readonly pausedAt: number | null
  /** A sentence. */
  readonly reason: string
}

/** What a worker has read: events up to `place` of the shards that it had at `epoch`. */
export interface Cursor {
  /** 0: it had no shard. */
  readonly epoch: number
  readonly place: FeedPlace
}

/** Writes a cursor as text. What follows the first `-` is the id of the last event before it. */
export const encodeCursor = ({ epoch, place }: Cursor): string => `${epoch}-${place}`

const cursorText = /^(\d{1,15})-(.*)$/

/** Reads a cursor; undefined: the text is none. */
export const decodeCursor = (text: string): Cursor | undefined => {
  const [, epoch, place] = cursorText.exec(text) ?? []
  return epoch === undefined || place === undefined || !isFeedPlace(place) ? undefined : { epoch: Number(epoch), place }
}

/** The cursor after one of the events that were read together with this cursor. */
export const cursorAt = (cursor: string, id: FeedPlace): string => `${cursor.slice(0, cursor.indexOf("-"))}-${id}`

/** The shard of an event: a hash (FNV-1a) of the device id. Events without device have the first shard. */
export const shardOf = ({ device }: DomainEvent): number => {
  if (device === null) return 0
  let hash = 0x811c9dc5
  for (let i = 0; i < device.deviceId.length; i++) hash = Math.imul(hash ^ device.deviceId.charCodeAt(i), 0x01000193)
  return (hash >>> 0) % shardCount
}

/** The progress of a new subscription that begins at `place`. */
export const beginAt = (place: FeedPlace): Progress => ({
  epoch: 0,
  shards: Array.from({ length: shardCount }, () => ({ place, epoch: 0, worker: null })),
  workers: [],
  failure: null
})

const byName = (a: Worker, b: Worker): number => a.worker < b.worker ? -1 : 1

const renewed = ({ workers }: Progress, worker: string, until: number): ReadonlyArray<Worker> =>
  [...workers.filter((other) => other.worker !== worker), { worker, until }].sort(byName)

/** How many shards the worker is to have: as many as each other, or one more. */
const partOf = (workers: ReadonlyArray<Worker>, worker: string): number => {
  const rank = workers.findIndex((other) => other.worker === worker)
  return Math.floor(shardCount / workers.length) + (rank < shardCount % workers.length ? 1 : 0)
}

/**
 * Renews the lease of the worker and gives it its part of the shards. Shards of
 * workers whose lease has ended are free, and of those whose lease lasts longer than
 * `leaseMillis`: a clock that was wrong gave it. What the worker has beyond its part
 * becomes free. Undefined: there are too many workers.
 */
export const claim = (progress: Progress, worker: string, now: number, leaseMillis: number): Progress | undefined => {
  const living = progress.workers.filter(({ until }) => until > now && until <= now + leaseMillis)
  const workers = renewed({ ...progress, workers: living }, worker, now + leaseMillis)
  if (workers.length > maxWorkers) return undefined
  const part = partOf(workers, worker)
  let held = 0
  const kept = progress.shards.map((shard) => {
    if (shard.worker === worker) return ++held <= part ? shard : { ...shard, worker: null }
    return workers.some((other) => other.worker === shard.worker) ? shard : { ...shard, worker: null }
  })
  const epoch = progress.epoch + 1
  let given = 0
  const shards = kept.map((shard) => {
    if (shard.worker !== null || held + given >= part) return shard
    given++
    return { ...shard, epoch, worker }
  })
  return { ...progress, epoch: given === 0 ? progress.epoch : epoch, shards, workers }
}

/** The shards that the worker has, each with the place after which it reads: what is acknowledged, or read up to `from`. */
export const startsOf = (
  { shards }: Progress,
  worker: string,
  from: Cursor | undefined
): ReadonlyArray<FeedPlace | undefined> =>
  shards.map((shard) => {
    if (shard.worker !== worker) return undefined
    return from !== undefined && shard.epoch <= from.epoch && from.place > shard.place ? from.place : shard.place
  })

/**
 * Acknowledges what the worker has read, in the shards that it has had since then,
 * and renews its lease, if it has one. Undefined: it has none of them any more.
 */
export const acknowledge = (
  progress: Progress,
  worker: string,
  { epoch, place }: Cursor,
  until: number
): Progress | undefined => {
  let isHeld = epoch === 0
  const shards = progress.shards.map((shard) => {
    if (shard.worker !== worker || shard.epoch > epoch) return shard
    isHeld = true
    return place > shard.place ? { ...shard, place } : shard
  })
  if (!isHeld) return undefined
  // Whoever shows the cursor of a worker without shards becomes no worker by that.
  const isKnown = progress.workers.some((other) => other.worker === worker)
  return { ...progress, shards, workers: isKnown ? renewed(progress, worker, until) : progress.workers }
}

/** Moves all shards to a place. What workers have read before has no effect any more. */
export const moveTo = (progress: Progress, place: FeedPlace): Progress => {
  const epoch = progress.epoch + 1
  return { ...progress, epoch, shards: progress.shards.map((shard) => ({ ...shard, place, epoch })) }
}

/** The worker ends: its shards are free at once. */
export const leave = (progress: Progress, worker: string): Progress => ({
  ...progress,
  shards: progress.shards.map((shard) => shard.worker === worker ? { ...shard, worker: null } : shard),
  workers: progress.workers.filter((other) => other.worker !== worker)
})

/** The earliest of the places; undefined: there is none. */
export const earliest = (places: ReadonlyArray<FeedPlace | undefined>): FeedPlace | undefined =>
  places.filter((place) => place !== undefined).reduce<FeedPlace | undefined>(
    (first, place) => first === undefined || place < first ? place : first,
    undefined
  )
