/**
 * Port: a sink of events, another system that receives the feed of all projects.
 *
 * {@link EventSink.layer} reads the feed for a sink. One node at a time does so,
 * from the place where the last one stopped; another node takes over within
 * seconds when that node dies.
 */
import { type Cause, Clock, Effect, Layer, Metric, Option, Schema } from "effect"
import { given } from "../kernel/GivenEffect.ts"
import * as Outage from "../kernel/Outage.ts"
import { FeedReaderStore, type HeldReader } from "./FeedReaderStore.ts"
import { type FeedEntry, type FeedPage, type FeedPlace, type FeedSelection, FeedStore } from "./FeedStore.ts"

/** A sink could not take events. */
export class EventSinkError extends Schema.TaggedError<EventSinkError>()("EventSinkError", {
  /** What is wrong, for the operator. */
  message: Schema.String,
  cause: Schema.optional(Schema.Defect())
}) {}

export interface EventSink {
  /** Under this name its place in the feed is stored. Other sinks on the same storage have other names. */
  readonly name: string
  /** What the sink receives; undefined: all events. */
  readonly select?: FeedSelection | undefined
  /**
   * Takes 1 to 1,000 events, in the order of the feed. Succeeds when all are where
   * they should be. If it fails, the same events come again, perhaps with others
   * behind them and perhaps on another node: the sink gets each event at least once.
   */
  readonly deliver: (entries: ReadonlyArray<FeedEntry>) => Effect.Effect<void, EventSinkError>
}

export const EventSink = {
  /**
   * While this layer lives, feeds the sink: a new one with everything that the feed
   * keeps. Tries again for ever while the sink or the feed fails; logs the first
   * failure for each reason and the recovery.
   */
  layer: (sink: EventSink): Layer.Layer<never, never, FeedStore | FeedReaderStore> =>
    Layer.effectDiscard(Effect.suspend(() => make(sink)))
}

/** Without renewal, a node has lost the reader after this time. */
const leaseMillis = 5000
const renewEvery = "1500 millis"
/** How often a node looks whether it can take over. */
const claimEvery = "1 second"
/** How often the end of the feed is read again. */
const pollEvery = "250 millis"
const batchSize = 1000
/** How many events are counted that a sink has not taken, and how often while there are many. */
const maxLag = 10_000
const countEveryMillis = 15_000

/** Milliseconds until the next attempt. */
const pauseAfter = (failures: number): number => Math.min(100 * 2 ** failures, 5000)

const delivered = Metric.counter("device_cloud_sink_events_total", {
  description: "Events that a sink has taken",
  incremental: true
})
const failed = Metric.counter("device_cloud_sink_failures_total", {
  description: "Attempts to feed a sink that failed",
  incremental: true
})
const age = Metric.gauge("device_cloud_sink_lag_seconds", {
  description: "The age of the oldest event that a sink has not taken; 0 on nodes that do not feed it"
})

const lag = Metric.gauge("device_cloud_sink_lag_events", {
  description: "Events that a sink has not taken, at most 10,000; 0 on nodes that do not feed it"
})

const make = Effect.fnUntraced(function*({ deliver, name, select }: EventSink) {
  const feed = yield* FeedStore
  const readers = yield* FeedReaderStore
  const ofSink = { sink: name }
  const outage = Outage.make(`The event sink ${name} cannot take events; trying again`)
  let failures = 0
  /** When events that wait were last counted, Unix milliseconds. */
  let countedAt = 0

  const tell = (waiting: { readonly events: number; readonly millis: number }) =>
    Effect.andThen(
      Metric.update(Metric.withAttributes(lag, ofSink), waiting.events),
      Metric.update(Metric.withAttributes(age, ofSink), waiting.millis / 1000)
    )
  const tellNone = tell({ events: 0, millis: 0 })

  /** Measures what waits. Looks beyond the page now and then only. */
  const measure = Effect.fnUntraced(function*(after: FeedPlace, { entries, hasMore }: FeedPage) {
    const now = yield* Clock.currentTimeMillis
    if (hasMore && now < countedAt + countEveryMillis) return
    countedAt = now
    const { length } = hasMore
      ? (yield* feed.read({ projectId: undefined, after, limit: maxLag, select })).entries
      : entries
    yield* tell({ events: length, millis: Math.max(now - entries[0]!.event.at, 0) })
  })

  const recovered = Effect.gen(function*() {
    failures = 0
    if (yield* outage.over) yield* Effect.logInfo(`The event sink ${name} takes events again`)
  })

  /** Feeds the sink until another node has taken the reader. */
  const feedAs = ({ epoch, place: start }: HeldReader) => {
    let place = start
    const advance = Effect.suspend(() => readers.advance({ name, epoch, place, leaseMillis }))

    const step = Effect.gen(function*() {
      const page = yield* feed.read({ projectId: undefined, after: place, limit: batchSize, select })
      if (page.isGap) yield* Effect.logWarning(`The event sink ${name} misses events that the feed no longer keeps`)
      const isEmpty = page.entries.length === 0
      if (!isEmpty) {
        yield* measure(place, page)
        yield* given(`deliver of the event sink ${name}`, () => deliver(page.entries))
        yield* Metric.update(Metric.withAttributes(delivered, ofSink), page.entries.length)
      }
      yield* recovered
      if (!page.hasMore) yield* tellNone
      place = page.next
      // A place behind events that are not for the sink is stored with the next renewal.
      const isHeld = isEmpty || (yield* advance)
      if (isHeld && !page.hasMore) yield* Effect.sleep(pollEvery)
      return isHeld
    })

    const whileHeld = { while: (isHeld: boolean) => isHeld }
    return Effect.raceFirst(
      Effect.repeat(step, whileHeld),
      Effect.repeat(Effect.delay(advance, renewEvery), whileHeld)
    )
  }

  const attempt = Effect.flatMap(
    readers.claim({ name, leaseMillis }),
    Option.match({
      onNone: () => Effect.andThen(tellNone, Effect.sleep(claimEvery)),
      onSome: (held) => Effect.ensuring(feedAs(held), Effect.ignore(readers.release({ name, epoch: held.epoch })))
    })
  )

  const rest = Effect.fnUntraced(function*(cause: Cause.Cause<unknown>) {
    yield* outage.failed(cause)
    yield* Metric.update(Metric.withAttributes(failed, ofSink), 1)
    yield* Effect.sleep(pauseAfter(failures++))
  })

  yield* attempt.pipe(
    Effect.catchCause(rest),
    Effect.forever,
    Effect.forkScoped
  )
})
