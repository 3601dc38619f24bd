/**
 * Up to where the feed is packed, who packs it (one process at a time), and how long it is kept.
 */
import { Effect, type Option } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { wholeNumbers } from "./PgParameters.ts"

/** How long nobody else works on the history, unless the process goes on or has ended its work. */
const lease = "1 minute"

/** Rows of the feed that are worth packing, and how long fewer may wait. */
const worthPacking = 100_000
const packEvery = "10 minutes"

/** Whether there is work. Costs little. Work of the future was done by a clock that was ahead. */
export const isDue = (sql: SqlClient.SqlClient): Effect.Effect<boolean, SqlError.SqlError> =>
  Effect.map(
    sql<{ readonly isDue: boolean }>`
      SELECT packed_at NOT BETWEEN now() - ${packEvery}::interval AND clock_timestamp()
        OR (SELECT last_value FROM feed_seq) - seq >= ${worthPacking} AS "isDue"
      FROM history_place`,
    ([row]) => row!.isDue
  )

/** Keeps the lease for another while. */
export const renew = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError.SqlError> =>
  Effect.asVoid(sql`UPDATE history_place SET leased_until = now() + ${lease}::interval`)

/**
 * Runs the effect while no other process has the lease; none: another one has it. One
 * that is too long, by a clock that was ahead, has ended.
 */
export const withLease = <A, E, R>(
  sql: SqlClient.SqlClient,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<Option.Option<A>, E | SqlError.SqlError, R> =>
  Effect.acquireUseRelease(
    sql`UPDATE history_place SET leased_until = now() + ${lease}::interval
      WHERE leased_until NOT BETWEEN clock_timestamp() AND clock_timestamp() + ${lease}::interval
      RETURNING 1`,
    (taken) => taken.length === 0 ? Effect.succeedNone : Effect.asSome(effect),
    (taken) =>
      taken.length === 0 ? Effect.void : Effect.ignore(sql`UPDATE history_place SET leased_until = '-infinity'`)
  )

/** The days to keep what each device says; a device that is gone has none. */
export const keepOf = (
  sql: SqlClient.SqlClient,
  devices: ReadonlyArray<number>
): Effect.Effect<ReadonlyMap<number, number>, SqlError.SqlError> =>
  Effect.map(
    sql<{ readonly id: bigint; readonly keep: number }>`
      SELECT device.id, coalesce(history_retention.days, history_place.keep_days) AS keep
      FROM device LEFT JOIN history_retention USING (product_key) CROSS JOIN history_place
      WHERE device.id = ANY(${wholeNumbers(devices)}::bigint[])`,
    (rows) => new Map(rows.map(({ id, keep }) => [Number(id), keep]))
  )
