/**
 * The parts of the feed: partitions of its table, by slot. New rows go to the
 * newest one; the oldest go as a whole.
 *
 * Nothing here waits while it holds a lock that writers need: a part is attached
 * and detached under locks that writers share.
 */
import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"

/** Parts of the time to keep, and of the bytes to keep, after which a new part is opened. */
const partsOfTime = 28
const partsOfBytes = 16

/** How much the numbers of the feed go up in another cluster: more than transactions that are not in the dump. */
const leap = 1_000_000_000

/** Any number that nothing else in the database locks. */
const lock = 7_238_911

type Sql = SqlClient.SqlClient
type Done<A = void> = Effect.Effect<A, SqlError.SqlError>

const nameOf = (slot: number): string => `feed_${slot}`

/** Opens a part after the newest one, unless another process has. `leap`: what is added to its numbers. */
const open = (sql: Sql, newest: number, leap: bigint): Done =>
  sql.withTransaction(Effect.gen(function*() {
    yield* sql`SELECT pg_advisory_xact_lock(${lock}::int)`
    const [later] = yield* sql`SELECT FROM feed_slot WHERE slot > ${newest}`
    if (later !== undefined) return
    const part = sql(nameOf(newest + 1))
    yield* sql`CREATE TABLE ${part} (LIKE feed INCLUDING DEFAULTS INCLUDING INDEXES)`
    yield* sql`ALTER TABLE feed ATTACH PARTITION ${part} FOR VALUES IN (${sql.literal(String(newest + 1))})`
    yield* sql`
      INSERT INTO feed_slot (slot, opened_at, xid_offset, forgotten_xid, forgotten_seq)
      SELECT slot + 1, clock_timestamp(), xid_offset + ${String(leap)}::bigint, forgotten_xid, forgotten_seq
      FROM feed_slot WHERE slot = ${newest}`
  }))

/**
 * Opens a part with greater numbers if the newest one comes from another cluster, or
 * has numbers that this one has not reached: a dump was restored, and readers may have
 * places from after it.
 */
export const alignTransactions = (sql: Sql): Done =>
  Effect.gen(function*() {
    const [row] = yield* sql<{
      readonly slot: number
      readonly isRestored: boolean
      readonly stored: bigint
      readonly next: bigint
    }>`
      SELECT slot, cluster <> (SELECT system_identifier::text FROM pg_control_system()) AS "isRestored",
        coalesce((SELECT xid FROM feed ORDER BY xid DESC LIMIT 1), 0) AS stored,
        pg_snapshot_xmax(pg_current_snapshot())::text::bigint + xid_offset AS next
      FROM feed_slot ORDER BY slot DESC LIMIT 1`
    const { isRestored, next, slot, stored } = row!
    const missing = stored < next ? 0n : stored - next
    if (isRestored || stored >= next) yield* open(sql, slot, missing + BigInt(leap))
  })

interface Part {
  readonly slot: number
  readonly isNewest: boolean
  readonly isEmpty: boolean
  /** Whether all its rows are too old. */
  readonly isOld: boolean
  /** Whether the history has what it needs of its rows. */
  readonly isPacked: boolean
  readonly bytes: bigint
}

const partsOf = (sql: Sql, keepMillis: number) =>
  sql<Part>`
    SELECT slot, next IS NULL AS "isNewest",
      NOT EXISTS (SELECT FROM feed WHERE feed.slot = part.slot) AS "isEmpty",
      NOT EXISTS (
        SELECT FROM feed WHERE feed.slot = part.slot AND xid >= (SELECT xid FROM history_place)
      ) AS "isPacked",
      coalesce(next <= now() - ${keepMillis}::float8 * interval '1 ms', false) AS "isOld",
      coalesce(pg_total_relation_size(to_regclass('feed_' || slot)), 0) AS bytes
    FROM (SELECT slot, lead(opened_at) OVER (ORDER BY slot) AS next FROM feed_slot) AS part
    ORDER BY slot`

/** No part was opened in the future: a clock that was ahead said so. */
const correctTimes = (sql: Sql): Done =>
  Effect.asVoid(sql`UPDATE feed_slot SET opened_at = clock_timestamp() WHERE opened_at > clock_timestamp()`)

/**
 * Opens a part when the one in use is old or large. Not while a transaction runs
 * that may still write to the part before it: readers look one part back.
 */
const openIfDue = (sql: Sql, keepMillis: number, maxBytes: number): Done =>
  Effect.gen(function*() {
    const newest = (yield* partsOf(sql, keepMillis)).at(-1)!
    if (newest.isEmpty) return
    const [due] = yield* sql`
      SELECT FROM feed_slot WHERE slot = ${newest.slot} AND (
        opened_at <= now() - ${keepMillis / partsOfTime}::float8 * interval '1 ms' OR
        ${Number(newest.bytes)}::float8 > ${maxBytes / partsOfBytes}::float8
      ) AND NOT EXISTS (
        SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND xact_start NOT BETWEEN opened_at AND clock_timestamp()
      )`
    if (due !== undefined) yield* open(sql, newest.slot, 0n)
  })

/** Forgets a part, or goes on where a process was stopped that did. */
const drop = (sql: Sql, slot: number): Done =>
  Effect.gen(function*() {
    const part = sql(nameOf(slot))
    yield* sql`
      UPDATE feed_slot SET forgotten_xid = last.xid, forgotten_seq = last.seq
      FROM (SELECT xid, seq FROM feed WHERE feed.slot = ${slot} ORDER BY xid DESC, seq DESC LIMIT 1) AS last
      WHERE (forgotten_xid, forgotten_seq) < (last.xid, last.seq)`
    const [attached] = yield* sql<{ readonly isPending: boolean }>`
      SELECT inhdetachpending AS "isPending" FROM pg_inherits WHERE inhrelid = to_regclass(${nameOf(slot)})`
    if (attached !== undefined) {
      yield* sql`ALTER TABLE feed DETACH PARTITION ${part} ${
        sql.literal(attached.isPending ? "FINALIZE" : "CONCURRENTLY")
      }`
    }
    yield* sql`DROP TABLE IF EXISTS ${part}`
    yield* sql`DELETE FROM feed_slot WHERE slot = ${slot}`
  })

/** As `FeedStore.prune`. A part goes when the transactions have ended that may read it: on a connection that nobody shares. */
export const prune = (
  sql: Sql,
  { isHistoryApart, keepMillis, maxBytes }: {
    readonly keepMillis: number
    readonly maxBytes: number
    readonly isHistoryApart: boolean
  }
): Done =>
  Effect.gen(function*() {
    yield* correctTimes(sql)
    yield* openIfDue(sql, keepMillis, maxBytes)
    const parts = yield* partsOf(sql, keepMillis)
    let stored = parts.reduce((sum, { bytes }) => sum + Number(bytes), 0)
    for (const { bytes, isNewest, isOld, isPacked, slot } of parts) {
      if (isNewest || !(isPacked || isHistoryApart) || !(isOld || stored > maxBytes)) break
      yield* drop(sql, slot)
      stored -= Number(bytes)
    }
    // An hour: the transaction of a deletion may have begun before the part was opened that has its event.
    yield* sql`DELETE FROM former_device
      WHERE deleted_at < (SELECT min(opened_at) FROM feed_slot) - interval '1 hour'`
  })
