/**
 * Readers of the feed, on PostgreSQL.
 */
import { FeedReaderStore, feedStart } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Array, Effect, Layer, Option } from "effect"
import { storeError } from "./PgErrors.ts"

/** Stands alone: its table refers to no other. */
export const layer: Layer.Layer<FeedReaderStore, never, PgClient.PgClient> = Layer.effect(
  FeedReaderStore,
  Effect.map(PgClient.PgClient, (sql) => make(sql))
)

const make = (sql: PgClient.PgClient) => {
  const fromNow = (millis: number) => sql`clock_timestamp() + ${millis}::float8 * interval '1 millisecond'`

  return FeedReaderStore.of({
    claim: ({ leaseMillis, name }) =>
      sql<{ readonly place: string; readonly epoch: bigint }>`
        INSERT INTO feed_reader AS known (name, place, epoch, leased_until)
        VALUES (${name}, ${feedStart}, 1, ${fromNow(leaseMillis)})
        -- The new lease was counted before this statement waited for the row, which may have a later one since.
        ON CONFLICT (name) DO UPDATE SET epoch = known.epoch + 1, leased_until = excluded.leased_until
        WHERE known.leased_until <= clock_timestamp() OR known.leased_until > ${fromNow(leaseMillis)}
        RETURNING place, epoch`.pipe(
        Effect.map((rows) => Option.map(Array.head(rows), ({ epoch, place }) => ({ place, epoch: Number(epoch) }))),
        Effect.mapError(storeError("FeedReaderStore.claim"))
      ),
    advance: ({ epoch, leaseMillis, name, place }) =>
      sql`
        UPDATE feed_reader SET place = greatest(place, ${place}), leased_until = ${fromNow(leaseMillis)}
        WHERE name = ${name} AND epoch = ${epoch}
        RETURNING name`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.mapError(storeError("FeedReaderStore.advance"))
      ),
    release: ({ epoch, name }) =>
      sql`UPDATE feed_reader SET leased_until = clock_timestamp() WHERE name = ${name} AND epoch = ${epoch}`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("FeedReaderStore.release"))
      )
  })
}
