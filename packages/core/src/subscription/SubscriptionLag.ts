/**
 * How far a subscription is behind the feed.
 */
import { Effect } from "effect"
import { Feed } from "../feed/Feed.ts"
import { FilteredEvents, selectionOf } from "./FilteredEvents.ts"
import { earliest, shardOf } from "./Shards.ts"
import type { StoredSubscription } from "./SubscriptionStore.ts"

/** Events that are counted, at most. */
export const maxLag = 10_000

/** Entries that are read from the feed at once. */
const pageSize = 1000

/** Pages that are read, at most. */
const maxPages = 20

export interface SubscriptionLag {
  /** Events that are not acknowledged. */
  readonly events: number
  /** There may be more of them: they are counted up to {@link maxLag}, among the next 20,000 events of the project. */
  readonly hasMore: boolean
  /** When the oldest of them happened, Unix milliseconds; null: there is none. */
  readonly oldestAt: number | null
  /** Events were dropped before they were read. */
  readonly isGap: boolean
}

/** Makes a function that measures the lag of a subscription. */
export const make = Effect.gen(function*() {
  const feed = yield* Feed
  const filtered = yield* FilteredEvents

  return Effect.fnUntraced(function*({ progress, subscription }: StoredSubscription) {
    const places = progress.shards.map(({ place }) => place)
    const select = selectionOf(subscription.filter)
    let lag: SubscriptionLag = { events: 0, hasMore: true, oldestAt: null, isGap: false }
    let after = earliest(places)!
    for (let read = 0; read < maxPages && lag.hasMore && lag.events < maxLag; read++) {
      const page = yield* feed.read({ projectId: subscription.projectId, after, limit: pageSize, select })
      const left = page.entries.filter(({ event, id }) => id > places[shardOf(event)]!)
      const found = yield* filtered.of(subscription, left)
      lag = {
        events: Math.min(maxLag, lag.events + found.length),
        hasMore: page.hasMore,
        oldestAt: lag.oldestAt ?? found[0]?.event.at ?? null,
        isGap: lag.isGap || page.isGap
      }
      after = page.next
    }
    return lag
  })
})
