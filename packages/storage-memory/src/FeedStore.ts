/**
 * The feed in memory.
 */
import {
  type DomainEvent,
  type FeedPage,
  type FeedPlace,
  type FeedRead,
  type FeedSelection,
  FeedStore,
  historyOf,
  parsePlace,
  type PresenceEntry,
  presenceKinds,
  projectOf,
  StoreError
} from "@device-cloud/core"
import { Clock, Effect, Layer, Option } from "effect"
import { placeOfNumber } from "./FeedLog.ts"
import { append as appendHistory } from "./HistoryStore.ts"
import { Tables } from "./Tables.ts"

/** Keeps the latest 50,000 events, fewer if they are large. Part of the group that is replaced together: other stores write events. */
export const layer: Layer.Layer<FeedStore, never, Tables> = Layer.effect(
  FeedStore,
  Effect.map(Tables, (tables) => make(tables))
)

/** Entries that one read may look at. */
const maxScanned = 10_000

const selects = ({ deviceIds, kinds, productKeys, projectIds }: FeedSelection, event: DomainEvent): boolean => {
  const { _tag, device } = event
  return (projectIds === undefined || projectIds.includes(projectOf(event))) &&
    (kinds === undefined || kinds.includes(_tag)) &&
    (productKeys === undefined || (device !== null && productKeys.includes(device.productKey))) &&
    (deviceIds === undefined || (device !== null && deviceIds.includes(device.deviceId)))
}

const isPresence = (kind: DomainEvent["_tag"]) => (presenceKinds as ReadonlyArray<string>).includes(kind)

/** Fails for a text that is no place, and cannot pass. */
const numberOf = (place: FeedPlace): Effect.Effect<number, StoreError> =>
  Option.match(parsePlace(place), {
    onSome: ({ transaction }) => Effect.succeed(transaction),
    onNone: () =>
      Effect.fail(
        new StoreError({
          operation: "FeedStore.read",
          retryable: false,
          cause: new Error(`expected a place of the feed, got ${JSON.stringify(place)}`)
        })
      )
  })

const make = (tables: Tables["Service"]) => {
  const { feed } = tables

  const append = (events: ReadonlyArray<DomainEvent>) =>
    Effect.clockWith((clock) =>
      Effect.sync(() => {
        feed.append(events, clock.currentTimeMillisUnsafe())
        for (const event of events) {
          if (event.device !== null) appendHistory(tables, event.device.deviceId, historyOf([event]))
        }
      })
    )

  const pageOf = ({ limit, projectId, select = {}, ...options }: FeedRead, after: number): FeedPage => {
    const scanned = feed.after(after, maxScanned)
    const found = scanned.filter(({ event }) =>
      (projectId === undefined || projectOf(event) === projectId) && selects(select, event)
    )
    const entries = found.slice(0, limit)
    const isFull = entries.length === limit
    return {
      entries,
      next: isFull ? entries.at(-1)!.id : scanned.at(-1)?.id ?? placeOfNumber(feed.last),
      hasMore: isFull || scanned.length === maxScanned,
      isGap: options.after !== "" && (after < feed.forgotten || after > feed.last)
    }
  }

  return FeedStore.of({
    append,
    commit: (write, eventsOf) => Effect.tap(write, (result) => append(eventsOf(result))),
    read: (options) => Effect.suspend(() => Effect.map(numberOf(options.after), (number) => pageOf(options, number))),
    presenceOf: (deviceId, { before, limit }) =>
      Effect.suspend(() =>
        Effect.map(before === undefined ? Effect.succeed(feed.last + 1) : numberOf(before), (number) =>
          feed.before(
            number,
            limit,
            ({ _tag, device }) => device?.deviceId === deviceId && isPresence(_tag)
          ) as ReadonlyArray<PresenceEntry>)
      ),
    end: Effect.sync(() => placeOfNumber(feed.last)),
    placeAt: (time) => Effect.sync(() => placeOfNumber(feed.recordedBefore(time))),
    prune: ({ keepMillis, maxBytes }) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        feed.forgetBefore(now - keepMillis)
        feed.forgetBeyond(maxBytes)
      })
  })
}
