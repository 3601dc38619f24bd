/**
 * How far subscriptions are behind, for those who watch the cloud
 * (docs/operations/README.md).
 */
import { Clock, Duration, Effect, Layer, Metric } from "effect"
import type { Feed } from "../feed/Feed.ts"
import * as Periodic from "../kernel/Periodic.ts"
import type { FilteredEvents } from "./FilteredEvents.ts"
import * as SubscriptionLag from "./SubscriptionLag.ts"
import { type StoredSubscription, SubscriptionStore } from "./SubscriptionStore.ts"

/** Works for as long as the scope lives. */
export const layer: Layer.Layer<never, never, SubscriptionStore | Feed | FilteredEvents> = Layer.effectDiscard(
  Effect.suspend(() => make)
)

const lagEvents = Metric.gauge("device_cloud_subscription_lag_events", {
  description: "Events of a subscription that are not acknowledged; at most 10,000 are counted"
})
const lagSeconds = Metric.gauge("device_cloud_subscription_lag_seconds", {
  description: "Age of the oldest event of a subscription that is not acknowledged"
})

const measureEvery = "15 seconds"

/** Subscriptions that are measured: each has a series of its own. */
const maxMeasured = 1000

/** Measuring takes one part in so many of the time, however far subscriptions are behind. */
const share = 20

const make = Effect.gen(function*() {
  const store = yield* SubscriptionStore
  const measure = yield* SubscriptionLag.make
  /** Those that have a series. */
  const measured = new Set<number>()

  const show = (subscriptionId: number, events: number, seconds: number) => {
    const attributes = { subscription: String(subscriptionId) }
    return Effect.andThen(
      Metric.update(Metric.withAttributes(lagEvents, attributes), events),
      Metric.update(Metric.withAttributes(lagSeconds, attributes), seconds)
    )
  }

  const measureOne = Effect.fnUntraced(function*(stored: StoredSubscription) {
    const [took, { events, oldestAt }] = yield* Effect.timed(measure(stored))
    const now = yield* Clock.currentTimeMillis
    yield* show(stored.subscription.subscriptionId, events, oldestAt === null ? 0 : Math.max(0, now - oldestAt) / 1000)
    yield* Effect.sleep(Duration.times(took, share))
  })

  const measureAll = Effect.gen(function*() {
    const all = yield* store.all(0, maxMeasured)
    const ids = new Set(all.map(({ subscription }) => subscription.subscriptionId))
    for (const id of measured) {
      if (!ids.has(id)) yield* show(id, 0, 0)
    }
    for (const id of ids) if (measured.size < maxMeasured) measured.add(id)
    yield* Effect.forEach(all.filter(({ subscription }) => measured.has(subscription.subscriptionId)), measureOne, {
      discard: true
    })
  })
  yield* measureAll.pipe(
    Effect.catch((error) => Effect.logWarning("The lag of subscriptions could not be measured", error)),
    Periodic.every(measureEvery)
  )
})
