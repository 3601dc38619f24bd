/**
 * Publishes every event of the cloud on NATS JetStream.
 *
 * Each event is stored by the stream before its place in the feed is: none is
 * missed. The id of the event is the id of the message, so the stream recognizes
 * what is published twice.
 *
 * The stream has the order of the feed, also after a connection breaks. Each
 * message names the one before it, and the server refuses a message that does not
 * follow the one it names: when one is lost, none behind it is stored. What is
 * published again begins with the first that may be missing: the stream forgets
 * ids, and one that it does not take may hold up the sink for longer.
 */
import {
  EventSink,
  EventSinkError,
  eventText,
  eventTypes,
  type FeedEntry,
  type FeedReaderStore,
  type FeedStore
} from "@device-cloud/core"
import { checkUrl } from "@device-cloud/nats"
import type { JetStreamClient } from "@nats-io/jetstream"
import { Effect, Layer, type Scope } from "effect"
import { connect, type Connected, type NatsOptions } from "./NatsConnection.ts"
import { subjectOf } from "./Subject.ts"

/**
 * Feeds NATS while it lives. Waits for a server that is not there. The name of the
 * sink is `nats/<stream>`.
 */
export const layer = (options: NatsOptions): Layer.Layer<never, never, FeedStore | FeedReaderStore> =>
  Layer.unwrap(Effect.map(make(options), EventSink.layer))

/** How many messages are on their way at once. */
const inFlight = 256

class PublishError {
  readonly _tag = "PublishError"
  readonly cause: unknown
  constructor(cause: unknown) {
    this.cause = cause
  }
}

const bodyOf = ({ event, id }: FeedEntry): string =>
  `{"id":${JSON.stringify(id)},"type":"${eventTypes[event._tag]}",${eventText(event).slice(1)}`

/** The sink, which is connected from the first event on until the scope closes. */
export const make = Effect.fnUntraced(function*(
  { prefix = "device-cloud", stream = "DEVICE_CLOUD", ...options }: NatsOptions
): Effect.fn.Return<EventSink, never, Scope.Scope> {
  checkUrl(options)
  let connected: Connected | undefined
  /** The ids that the stream has acknowledged of events that come again: it has not taken one behind them. */
  const acknowledged = new Set<string>()
  const disconnect = Effect.suspend(() => connected?.close ?? Effect.void)
  yield* Effect.addFinalizer(() => disconnect)

  const client = Effect.gen(function*() {
    if (connected?.isOpen() !== true) connected = yield* connect({ ...options, prefix, stream })
    return connected.client
  })

  /** Publishes an event behind that of the id `lastMsgID`, or behind whatever is there. */
  const publish = (client: JetStreamClient, entry: FeedEntry, lastMsgID: string | undefined) =>
    Effect.tryPromise({
      try: () =>
        client.publish(subjectOf(prefix, entry.event), bodyOf(entry), {
          msgID: entry.id,
          expect: { streamName: stream, ...lastMsgID === undefined ? {} : { lastMsgID } }
        }),
      catch: (cause) => new PublishError(cause)
    })

  const together = (client: JetStreamClient, entries: ReadonlyArray<FeedEntry>) =>
    Effect.forEach(entries, (entry, i) => publish(client, entry, entries[i - 1]?.id), {
      concurrency: inFlight,
      discard: true
    })

  /** For a stream in which others publish, too, or that does not take one of the events: each waits for the one before it. */
  const oneByOne = (client: JetStreamClient, entries: ReadonlyArray<FeedEntry>) =>
    Effect.forEach(
      entries,
      (entry) => Effect.andThen(publish(client, entry, undefined), Effect.sync(() => void acknowledged.add(entry.id))),
      { discard: true }
    )

  return {
    name: `nats/${stream}`,
    deliver: Effect.fnUntraced(function*(entries) {
      const current = yield* client
      const missing = entries.filter(({ id }) => !acknowledged.has(id))
      yield* together(current, missing).pipe(
        Effect.catch(() => oneByOne(current, missing)),
        Effect.tapError(() => disconnect),
        Effect.mapError(({ cause }) =>
          new EventSinkError({
            message: `NATS has not taken an event: ${cause instanceof Error ? cause.message : String(cause)}`,
            cause
          })
        )
      )
      acknowledged.clear()
    })
  }
})
