/**
 * Forgets events of the feed that are old, and the oldest when they need too much
 * room.
 */
import { Context, Duration, Effect, Layer } from "effect"
import { FeedStore } from "./feed/FeedStore.ts"
import { HistoryStandsApart } from "./history/HistoryStore.ts"
import * as Periodic from "./kernel/Periodic.ts"

/** How long events are kept, days, and how many bytes they may need at most. Default: 7 days and 20 GB. */
export const FeedLimits = Context.Reference<{ readonly days: number; readonly maxBytes: number }>(
  "@device-cloud/core/FeedLimits",
  { defaultValue: () => ({ days: 7, maxBytes: 20e9 }) }
)

const pruneEvery = "5 minutes"

/** Works for as long as the scope lives. */
export const layer: Layer.Layer<never, never, FeedStore> = Layer.effectDiscard(
  Effect.gen(function*() {
    const store = yield* FeedStore
    const { days, maxBytes } = yield* FeedLimits
    const isHistoryApart = yield* HistoryStandsApart
    yield* store.prune({ keepMillis: Duration.toMillis(Duration.days(days)), maxBytes, isHistoryApart }).pipe(
      Effect.catch((error) => Effect.logWarning("Old events could not be forgotten", error)),
      Periodic.every(pruneEvery)
    )
  })
)
