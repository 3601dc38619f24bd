/**
 * The events of a subscription as server-sent events.
 */
import { cursorAt, type DeliveredEvents, type ReadOptions, type SubscriptionReader } from "@device-cloud/core"
import { Effect, Option, Stream } from "effect"
import { failWith } from "../DomainFailures.ts"
import { beginning, encode, gap, heartbeat } from "../events/ServerSentEvent.ts"

/** How long a stream that has nothing to say waits until it says so, milliseconds. */
const wait = 15_000

const bytesOf = ({ cursor, entries, isGap }: DeliveredEvents): ReadonlyArray<Uint8Array> => {
  const before = isGap ? [gap] : []
  if (entries.length === 0) return isGap ? before : [heartbeat]
  return [...before, encode(entries.map(({ event, id }) => ({ id: cursorAt(cursor, id), event })))]
}

/** How far a stream has come. */
interface Position {
  readonly cursor: string
  /** The id of the last event that the client has got. */
  readonly delivered: string
}

const after = ({ cursor, entries }: DeliveredEvents, before?: Position): Position => ({
  cursor,
  delivered: entries.at(-1)?.id ?? before?.delivered ?? cursor.slice(cursor.indexOf("-") + 1)
})

/**
 * Opens a stream. Fails if the first read does; the stream ends when a later one
 * fails, and the client comes back.
 */
export const open = Effect.fnUntraced(function*(
  reader: SubscriptionReader["Service"],
  options: Omit<ReadOptions, "wait">
) {
  const first = yield* reader.read({ ...options, wait: 0 }).pipe(Effect.catch(failWith))
  const rest = Stream.paginate(after(first), (position) =>
    reader.read({ ...options, ...position, wait }).pipe(
      Effect.map((read) => [bytesOf(read), Option.some(after(read, position))] as const),
      Effect.catchCause((cause) =>
        Effect.as(
          Effect.logWarning("A stream of a subscription has ended", cause),
          [[], Option.none<Position>()] as const
        )
      )
    ))
  return Stream.fromIterable([beginning, ...first.entries.length === 0 && !first.isGap ? [] : bytesOf(first)]).pipe(
    Stream.concat(rest)
  )
})
