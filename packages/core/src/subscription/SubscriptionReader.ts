/**
 * Reads the events of subscriptions for their workers (docs/decisions/0081-subscriptions.md).
 */
import { Clock, Context, Effect, Layer, Option, Schema } from "effect"
import { Feed } from "../feed/Feed.ts"
import { type FeedEntry, type FeedPlace, feedStart } from "../feed/FeedStore.ts"
import { decodeInput, InvalidInput } from "../kernel/InvalidInput.ts"
import type { DomainEvent } from "../events/DomainEvent.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import { FilteredEvents, mayDeliver, selectionOf } from "./FilteredEvents.ts"
import * as News from "./News.ts"
import {
  acknowledge,
  claim,
  type Cursor,
  decodeCursor,
  earliest,
  encodeCursor,
  type Progress,
  shardCount,
  shardOf,
  startsOf
} from "./Shards.ts"
import {
  type Subscription,
  SubscriptionLeaseLost,
  SubscriptionNotFound,
  SubscriptionPushes,
  SubscriptionPushesNot,
  TooManyWorkers,
  WorkerName
} from "./Subscription.ts"
import { SubscriptionSteps } from "./SubscriptionSteps.ts"

/** A worker of a subscription. */
export interface SubscriptionWorker {
  readonly projectId: ProjectId
  readonly subscriptionId: number
  /** Its name, 1 to 64 characters. */
  readonly worker: string
}

export interface ReadOptions extends SubscriptionWorker {
  /** Where to read on without acknowledging; undefined: after what is acknowledged. */
  readonly cursor: string | undefined
  /**
   * The id of the last event before the cursor that the worker has got. When it is
   * acknowledged, the place moves on by itself. Default: that in the cursor.
   */
  readonly delivered?: FeedPlace
  /** The most events to return, 1 to 1,000. */
  readonly limit: number
  /** How long to wait for an event, milliseconds, 0 to 30,000; who pushes may wait for ever (`Infinity`). */
  readonly wait: number
  /** Whether the caller pushes the events to the webhook of the subscription. Default false. */
  readonly isPush?: boolean
}

/** Events of a subscription, in the order of the feed. */
export interface DeliveredEvents {
  readonly entries: ReadonlyArray<FeedEntry>
  /** Acknowledges these events, or reads on after them. */
  readonly cursor: string
  /** Events before these were dropped before they were read. */
  readonly isGap: boolean
  /** As it was when they were read. */
  readonly subscription: Subscription
}

export class SubscriptionReader extends Context.Service<SubscriptionReader, {
  /**
   * Gives the worker its part of the devices and returns their next events. Events
   * that are not acknowledged are returned again, to the worker or to the one that
   * takes its place when it has neither read nor acknowledged for 10 seconds.
   * Fails with `InvalidInput` if `worker` is no name, if `limit` or `wait` is out of
   * bounds, or if the cursor is none, with `SubscriptionPushes` if the subscription has a webhook and this is
   * not for it, with `SubscriptionPushesNot` if it is and there is no webhook.
   */
  readonly read: (
    options: ReadOptions
  ) => Effect.Effect<
    DeliveredEvents,
    InvalidInput | SubscriptionNotFound | SubscriptionPushes | SubscriptionPushesNot | TooManyWorkers | StoreError
  >
  /**
   * Acknowledges the events up to the cursor. Fails with `SubscriptionLeaseLost` if
   * the worker has nothing of it any more.
   */
  readonly acknowledge: (
    worker: SubscriptionWorker,
    cursor: string
  ) => Effect.Effect<
    void,
    InvalidInput | SubscriptionNotFound | SubscriptionPushes | SubscriptionLeaseLost | StoreError
  >
  /** Renews the lease of the worker, if it has one. */
  readonly renew: (worker: SubscriptionWorker) => Effect.Effect<void, StoreError>
}>()("@device-cloud/core/subscription/SubscriptionReader") {
  static readonly layer: Layer.Layer<SubscriptionReader, never, SubscriptionSteps | Feed | FilteredEvents> = Layer
    .effect(SubscriptionReader, Effect.suspend(() => make))
}

/** How long a worker keeps its shards without a sign of it, milliseconds. */
export const Lease = Context.Reference<number>("@device-cloud/core/subscription/Lease", {
  defaultValue: () => 10_000
})

/** How long after the last time a lease is renewed, milliseconds: it may fail twice. */
export const renewAfter = (lease: number): number => Math.ceil(lease / 3)

/** When a lease that was renewed `now` is renewed again. Those who wait renew at the same moments, together. */
const renewalAfter = (now: number, lease: number): number => {
  const beat = lease / 10
  return Math.floor((now + renewAfter(lease)) / beat) * beat
}

/** Entries that are read from the feed at once, at most. */
const maxRead = 1000

const decode = (cursor: string): Effect.Effect<Cursor, InvalidInput> =>
  Effect.suspend(() => {
    const decoded = decodeCursor(cursor)
    return decoded === undefined
      ? Effect.fail(InvalidInput.of("cursor", "Expected a cursor that a read of this subscription has returned"))
      : Effect.succeed(decoded)
  })

/** What a worker has of a subscription. */
interface Claimed {
  readonly subscription: Subscription
  readonly epoch: number
  /** By shard; undefined: the worker does not have it. */
  readonly starts: ReadonlyArray<FeedPlace | undefined>
  /** Up to where all is acknowledged; undefined: the worker has got something that is not, or has no shard. */
  readonly settled: FeedPlace | undefined
}

const limit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1000 }))
const decodeOptions = decodeInput(Schema.Struct({
  worker: WorkerName,
  limit,
  wait: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 30_000 }))
}))
const decodePushOptions = decodeInput(Schema.Struct({
  limit,
  wait: Schema.Number.check(Schema.isGreaterThanOrEqualTo(0))
}))

type Refusal = SubscriptionPushes | SubscriptionPushesNot | TooManyWorkers

const make = Effect.gen(function*() {
  const steps = yield* SubscriptionSteps
  const feed = yield* Feed
  const lease = yield* Lease
  const filtered = yield* FilteredEvents

  /**
   * Claims shards. `before`: what the worker had until now. `passed`: up to here, the
   * shards have no events that the filter of `before` admits; a newer filter may admit some.
   */
  const claimShards = Effect.fnUntraced(function*(
    { delivered, isPush = false, projectId, subscriptionId, worker }: ReadOptions,
    from: Cursor | undefined,
    before?: Claimed,
    passed?: Cursor
  ) {
    const outcome = yield* steps.take({
      projectId,
      subscriptionId,
      step: ({ progress, subscription }, now): readonly [Claimed | Refusal, Progress?] => {
        if (isPush !== (subscription.webhook !== null)) {
          return [new (isPush ? SubscriptionPushesNot : SubscriptionPushes)({ subscriptionId })]
        }
        const moved = passed === undefined || subscription.updatedAt !== before?.subscription.updatedAt
          ? undefined
          : acknowledge(progress, worker, passed, now + lease)
        const after = claim(moved ?? progress, worker, now, lease)
        if (after === undefined) return [new TooManyWorkers({ subscriptionId })]
        const got = delivered ?? from?.place ?? feedStart
        const acknowledged = earliest(startsOf(after, worker, undefined))
        const settled = acknowledged !== undefined && acknowledged >= got ? acknowledged : undefined
        return [{ subscription, epoch: after.epoch, starts: startsOf(after, worker, from), settled }, after]
      }
    })
    if (Option.isNone(outcome)) return yield* new SubscriptionNotFound({ subscriptionId })
    if (outcome.value instanceof Error) return yield* outcome.value
    return outcome.value
  })

  /** Whether the subscription is still what it was when the shards were claimed. */
  const isUnchanged = ({ subscription: { projectId, subscriptionId, updatedAt } }: Claimed) =>
    Effect.map(
      steps.take({ projectId, subscriptionId, step: ({ subscription }) => [subscription.updatedAt === updatedAt] }),
      Option.contains(true)
    )

  /**
   * Reads on after `place` until there are `limit` events, those found are large,
   * the feed ends, or it is `until` (Unix milliseconds).
   */
  const gather = Effect.fnUntraced(function*(
    { starts, subscription }: Claimed,
    place: FeedPlace,
    limit: number,
    until: number
  ) {
    const owned = starts.filter((start) => start !== undefined).length
    const select = selectionOf(subscription.filter)
    const entries: Array<FeedEntry> = []
    let [next, isGap] = [place, false]
    while (true) {
      const page = yield* feed.read({
        projectId: subscription.projectId,
        after: next,
        limit: Math.min(maxRead, Math.ceil(limit * shardCount / owned)),
        select
      })
      isGap ||= page.isGap
      const own = page.entries.filter(({ event, id }) => {
        const start = starts[shardOf(event)]
        return start !== undefined && id > start
      })
      for (const entry of yield* filtered.of(subscription, own)) {
        entries.push(entry)
        if (entries.length === limit) return { entries, place: entry.id, isGap }
      }
      next = page.next
      // What a reader holds at once is bounded in bytes, too.
      const isEnough = page.isCut === true && entries.length > 0
      if (isEnough || !page.hasMore || (yield* Clock.currentTimeMillis) >= until) {
        return { entries, place: next, isGap }
      }
    }
  })

  const read = Effect.fn("SubscriptionReader.read")(function*(options: ReadOptions) {
    const { cursor, projectId } = options
    const { limit, wait } = yield* (options.isPush === true ? decodePushOptions : decodeOptions)(options)
    const from = cursor === undefined ? undefined : yield* decode(cursor)
    const end = (yield* Clock.currentTimeMillis) + wait
    let passed: Cursor | undefined
    let news: News.News | undefined
    let claimed = yield* claimShards(options, from)
    let place = from?.place ?? feedStart
    /** Nothing for this worker has come after `place` but what `news` tells: there is nothing to read. */
    let isQuiet = false
    const concerns = (event: DomainEvent) =>
      claimed.starts[shardOf(event)] !== undefined && mayDeliver(claimed.subscription.filter, event)
    while (true) {
      const renewAt = renewalAfter(yield* Clock.currentTimeMillis, lease)
      const start = earliest(claimed.starts)
      const hasShards = start !== undefined
      if (!isQuiet && hasShards) place = start
      while (true) {
        const found = hasShards && !isQuiet
          ? yield* gather(claimed, place, limit, renewAt)
          : { entries: [], place, isGap: false }
        const { entries, isGap } = found
        place = found.place
        const reached = { epoch: hasShards ? claimed.epoch : 0, place }
        // Without events there is nothing to acknowledge: the place of the subscription moves on by itself.
        const { settled } = claimed
        if (settled !== undefined && entries.length === 0 && place > settled) passed = reached
        const now = yield* Clock.currentTimeMillis
        const isEnd = entries.length > 0 || isGap || now >= end
        // Who has waited reads again by a new filter, and for a new webhook.
        if (isEnd && (news === undefined || (yield* isUnchanged(claimed)))) {
          if (entries.length === 0 && passed !== undefined) yield* claimShards(options, from, claimed, passed)
          return { entries, cursor: encodeCursor(reached), isGap, subscription: claimed.subscription }
        }
        if (isEnd || now >= renewAt) break
        // What comes between the first read and the beginning of news is read again.
        if (news === undefined) {
          news = yield* News.follow(feed, projectId, claimed.subscription.filter.deviceIds, concerns)
        } else {
          const quietUntil = yield* news.wait(Math.min(renewAt, end) - now)
          isQuiet = quietUntil !== undefined
          if (quietUntil !== undefined && quietUntil > place) place = quietUntil
        }
      }
      const before = claimed
      claimed = yield* claimShards(options, from, before, passed)
      // Other shards, another place or a new filter: news until now was of something else.
      if (claimed.epoch !== before.epoch || claimed.subscription.updatedAt !== before.subscription.updatedAt) {
        isQuiet = false
        news = undefined
        passed = undefined
      }
    }
  }, Effect.scoped)

  const acknowledgeUpTo = Effect.fn("SubscriptionReader.acknowledge")(
    function*(worker: SubscriptionWorker, cursor: string) {
      const { projectId, subscriptionId } = worker
      const upTo = yield* decode(cursor)
      const outcome = yield* steps.take({
        projectId,
        subscriptionId,
        step: (
          { progress, subscription },
          now
        ): readonly [SubscriptionPushes | SubscriptionLeaseLost | undefined, (Progress | undefined)?] => {
          if (subscription.webhook !== null) return [new SubscriptionPushes({ subscriptionId })]
          const after = acknowledge(progress, worker.worker, upTo, now + lease)
          return [
            after === undefined ? new SubscriptionLeaseLost({ subscriptionId, worker: worker.worker }) : undefined,
            after
          ]
        }
      })
      if (Option.isNone(outcome)) return yield* new SubscriptionNotFound({ subscriptionId })
      if (outcome.value !== undefined) return yield* outcome.value
    }
  )

  return SubscriptionReader.of({
    read,
    acknowledge: acknowledgeUpTo,
    renew: ({ projectId, subscriptionId, worker }) =>
      Effect.asVoid(steps.take({
        projectId,
        subscriptionId,
        step: ({ progress }, now) => [
          undefined,
          acknowledge(progress, worker, { epoch: progress.epoch, place: feedStart }, now + lease)
        ]
      }))
  })
})
