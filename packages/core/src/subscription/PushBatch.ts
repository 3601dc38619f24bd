/**
 * What is pushed to a webhook in one request. Pure, and so is the pace of
 * attempts (docs/api/subscriptions.md).
 */
import type { FeedEntry } from "../feed/FeedStore.ts"
import { subscriptionEventText } from "./SubscriptionEvent.ts"
import type { PushFailure } from "./Shards.ts"
import type { Subscription } from "./Subscription.ts"

/** Events in one request, at most. */
export const maxBatch = 100

/** Bytes of the events in one request, at most; one event alone may have more. */
const maxBytes = 256 * 1024

/** How long attempts fail before pushing is paused, milliseconds. */
const pausedAfter = 3_600_000

/** The longest time between two attempts, milliseconds. */
export const maxDelay = 60_000

export interface PushBatch {
  readonly body: string
  /** The last of its events. */
  readonly last: FeedEntry
  readonly count: number
}

const encoder = new TextEncoder()

/** Makes the body of a request from the first of the entries, of which there is at least one. */
export const pushBatch = (
  { name, subscriptionId }: Subscription,
  entries: ReadonlyArray<FeedEntry>,
  isGap: boolean
): PushBatch => {
  const events: Array<string> = []
  let bytes = 0
  for (const entry of entries.slice(0, maxBatch)) {
    const event = subscriptionEventText(entry)
    bytes += encoder.encode(event).length + 1
    if (bytes > maxBytes && events.length > 0) break
    events.push(event)
  }
  const head = JSON.stringify({ subscription_id: subscriptionId, subscription_name: name, gap: isGap })
  return {
    body: `${head.slice(0, -1)},"events":[${events.join(",")}]}`,
    last: entries[events.length - 1]!,
    count: events.length
  }
}

/** The failure after another attempt has failed at `now` (Unix milliseconds): the next one is 1, 2, 4 … 60 seconds later. */
export const failedAgain = (before: PushFailure | null, now: number, reason: string): PushFailure => {
  const { attempts = 0, since = now } = before ?? {}
  return {
    since,
    attempts: attempts + 1,
    nextAt: now + Math.min(maxDelay, 1000 * 2 ** Math.min(attempts, 10)),
    pausedAt: now - since >= pausedAfter ? now : null,
    reason
  }
}
