/**
 * Readers of the feed, on SQLite.
 */
import { FeedReaderStore, feedStart } from "@device-cloud/core"
import { Clock, Effect, Layer, Option } from "effect"
import { Sqlite } from "./Sqlite.ts"

/** Stands alone: it reads no other data. */
export const layer: Layer.Layer<FeedReaderStore, never, Sqlite> = Layer.effect(
  FeedReaderStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

interface Row {
  readonly place: string
  readonly epoch: number
  readonly leased_until: number
}

const make = (sql: Sqlite["Service"]) => {
  const find = (name: string) => sql.get<Row>("SELECT * FROM feed_reader WHERE name = ?", [name])

  return FeedReaderStore.of({
    claim: ({ leaseMillis, name }) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        sql.write("FeedReaderStore.claim", () => {
          const known = find(name)
          if (known !== undefined && known.leased_until > now && known.leased_until <= now + leaseMillis) {
            return Option.none()
          }
          const held = { place: known?.place ?? feedStart, epoch: (known?.epoch ?? 0) + 1 }
          sql.run("INSERT OR REPLACE INTO feed_reader (name, place, epoch, leased_until) VALUES (?, ?, ?, ?)", [
            name,
            held.place,
            held.epoch,
            now + leaseMillis
          ])
          return Option.some(held)
        })),
    advance: ({ epoch, leaseMillis, name, place }) =>
      Effect.flatMap(
        Clock.currentTimeMillis,
        (now) =>
          sql.write("FeedReaderStore.advance", () =>
            sql.run("UPDATE feed_reader SET place = max(place, ?), leased_until = ? WHERE name = ? AND epoch = ?", [
              place,
              now + leaseMillis,
              name,
              epoch
            ]) > 0)
      ),
    release: ({ epoch, name }) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        sql.write("FeedReaderStore.release", () => {
          sql.run("UPDATE feed_reader SET leased_until = ? WHERE name = ? AND epoch = ?", [now, name, epoch])
        }))
  })
}
