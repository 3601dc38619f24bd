/**
 * Pushes the events of subscriptions to their webhooks. Each node pushes the shards
 * that it has, one request after the other (docs/decisions/0081-subscriptions.md).
 */
import { Clock, Effect, FiberMap, Layer, Option } from "effect"
import { NodeBus } from "../cluster/NodeBus.ts"
import * as Periodic from "../kernel/Periodic.ts"
import { isSuccess, shownResponse, WebhookDelivery } from "../scene/execution/WebhookDelivery.ts"
import { failedAgain, maxBatch, maxDelay, type PushBatch, pushBatch } from "./PushBatch.ts"
import { acknowledge, type Cursor, decodeCursor, leave, type Progress } from "./Shards.ts"
import type { Subscription } from "./Subscription.ts"
import { type DeliveredEvents, Lease, renewAfter, SubscriptionReader } from "./SubscriptionReader.ts"
import { SubscriptionSteps } from "./SubscriptionSteps.ts"
import { type StoredSubscription, SubscriptionStore } from "./SubscriptionStore.ts"

/** Works for as long as the scope lives. */
export const layer: Layer.Layer<
  never,
  never,
  SubscriptionStore | SubscriptionSteps | SubscriptionReader | WebhookDelivery | NodeBus
> = Layer.effectDiscard(Effect.suspend(() => make))

const isGoing = ({ progress, subscription }: StoredSubscription): boolean =>
  subscription.webhook !== null && progress.failure?.pausedAt == null

const make = Effect.gen(function*() {
  const store = yield* SubscriptionStore
  const steps = yield* SubscriptionSteps
  const reader = yield* SubscriptionReader
  const webhooks = yield* WebhookDelivery
  const lease = yield* Lease
  const worker = `node-${(yield* NodeBus).nodeId}`
  const pushing = yield* FiberMap.make<number>()

  const push = ({ projectId, subscriptionId }: Subscription) => {
    const own = { projectId, subscriptionId, worker }
    const modify = (step: (progress: Progress, now: number) => Progress | undefined) =>
      steps.take({ projectId, subscriptionId, step: ({ progress }, now) => [undefined, step(progress, now)] })

    /** Keeps the shards while something takes long. */
    const keepingLease = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.raceFirst(
        effect,
        Effect.forever(Effect.andThen(Effect.sleep(renewAfter(lease)), Effect.ignore(reader.renew(own))))
      )

    /** Returns why the attempt has failed; undefined: it went well. */
    const attempt = Effect.fnUntraced(function*(subscription: Subscription, batch: PushBatch, id: string) {
      let hasWaited = false
      while (true) {
        const outcome = yield* webhooks.send(projectId, {
          id,
          url: subscription.webhook!.url,
          method: "POST",
          body: batch.body,
          connectTimeout: null,
          requestTimeout: null,
          hasWaited
        })
        if (outcome._tag === "Unanswered") return outcome.error.message
        if (outcome._tag === "Undeliverable") return outcome.detail
        if (outcome._tag === "Answered") {
          return isSuccess(outcome.response.status) ? undefined : shownResponse(outcome.response)
        }
        hasWaited = true
        yield* Effect.sleep(Math.max(0, outcome.until - (yield* Clock.currentTimeMillis)))
      }
    })

    /** Returns whether the receiver has taken the events. */
    const pushEvents = Effect.fnUntraced(function*({ cursor, entries, isGap, subscription }: DeliveredEvents) {
      const batch = pushBatch(subscription, entries, isGap)
      const read: Cursor = { epoch: decodeCursor(cursor)!.epoch, place: batch.last.id }
      // With this epoch and these events, a request has the same content.
      const id = `msg_${subscriptionId}_${read.epoch}_${entries[0]!.id}_${read.place}_${batch.count}`
      const reason = yield* keepingLease(attempt(subscription, batch, id)).pipe(
        Effect.catchDefect((defect) =>
          Effect.as(Effect.logError("Events could not be pushed", defect), "Internal error")
        )
      )
      // Attempts are due by the clock of the cloud, leases last by that of the store.
      const now = yield* Clock.currentTimeMillis
      yield* modify((progress, leasedFrom) => {
        if (reason !== undefined) return { ...progress, failure: failedAgain(progress.failure, now, reason) }
        const after = acknowledge(progress, worker, read, leasedFrom + lease)
        return after === undefined ? undefined : { ...after, failure: null }
      })
      return reason === undefined
    })

    /** Waits until an attempt is due. Returns whether it had to; undefined: events are not pushed any more. */
    const untilDue = Effect.gen(function*() {
      for (let hasWaited = false;; hasWaited = true) {
        const stored = yield* store.get(projectId, subscriptionId)
        if (Option.isNone(stored) || !isGoing(stored.value)) return undefined
        const left = (stored.value.progress.failure?.nextAt ?? 0) - (yield* Clock.currentTimeMillis)
        // No attempt is due later than after the longest delay: a clock that was wrong said so.
        if (left <= 0 || left > maxDelay) return hasWaited
        yield* Effect.sleep(Math.min(left, renewAfter(lease)))
        yield* reader.renew(own)
      }
    })

    const work = Effect.gen(function*() {
      let isGap = false
      while (true) {
        const delivered = yield* reader.read({
          ...own,
          isPush: true,
          cursor: undefined,
          limit: maxBatch,
          wait: Number.POSITIVE_INFINITY
        })
        isGap ||= delivered.isGap
        const hasWaited = yield* untilDue
        if (hasWaited === undefined) return
        // After a wait, what was read may be another node's.
        if (hasWaited || delivered.entries.length === 0) continue
        const isTaken = yield* pushEvents({ ...delivered, isGap })
        // A later read does not tell of a gap again.
        if (isTaken) isGap = false
      }
    })

    return work.pipe(
      Effect.catchTags({ SubscriptionNotFound: () => Effect.void, SubscriptionPushesNot: () => Effect.void }),
      Effect.catchCause((cause) => Effect.logWarning(`Subscription ${subscriptionId} is not pushed for now`, cause)),
      // Another node goes on at once.
      Effect.ensuring(Effect.ignore(modify((progress) => leave(progress, worker))))
    )
  }

  const look = Effect.gen(function*() {
    for (const stored of yield* store.pushing(undefined, Array.from(pushing, ([id]) => id))) {
      const { subscription } = stored
      if (isGoing(stored)) {
        yield* FiberMap.run(pushing, subscription.subscriptionId, push(subscription), { onlyIfMissing: true })
      }
    }
  })
  yield* look.pipe(
    Effect.catch((error) => Effect.logWarning("Subscriptions with webhooks could not be read", error)),
    Periodic.looking
  )
})
