/**
 * Packs what the feed has of properties and events, and keeps the history in order:
 * merges segments, drops what is too old or belongs to devices that are gone.
 *
 * A segment and the place up to which the feed is packed are written in one
 * transaction. It is short, because the feed waits for writing transactions.
 */
import type { Json } from "@device-cloud/core"
import { Clock, Effect, Option, Schedule } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { horizon } from "./FeedHorizon.ts"
import { kindNumber } from "./FeedRow.ts"
import { dayOf, type EntryKind, HistoryEntries } from "./HistoryEntries.ts"
import { mergeSegments } from "./HistoryMerger.ts"
import { dropOldParts } from "./HistoryParts.ts"
import { isDue, keepOf, renew, withLease } from "./HistoryPlace.ts"
import { entriesOf } from "./HistoryReads.ts"
import { inOrder } from "./OrderedReads.ts"
import { wholeNumbers } from "./PgParameters.ts"
import { insertSegments, segmentsOf } from "./Segments.ts"

type Sql = SqlClient.SqlClient

/** Rows of the feed of one statement: the first one, and at most. */
const minPage = 500
const maxPage = 5000
/** Bytes of the feed after which a statement ends, and characters of values after which a transaction has enough. */
const enoughBytes = 16 * 1024 * 1024

/** How long the transaction of a deletion takes, at most. */
const longestDeletion = "1 minute"

/** As `HistoryStore.maintain`: works when work is due and nobody else does it. On a connection that nobody shares. */
export const maintain = (sql: Sql): Effect.Effect<void, SqlError.SqlError> =>
  Effect.flatMap(isDue(sql), (due) => due ? Effect.asVoid(withLease(sql, round(sql))) : Effect.void)

/** As `HistoryStore.prune`; waits for the lease. On a connection that nobody shares. */
export const prune = (sql: Sql, keepDays: number): Effect.Effect<void, SqlError.SqlError> =>
  sql`UPDATE history_place SET keep_days = ${keepDays} WHERE keep_days <> ${keepDays}`.pipe(
    Effect.andThen(Effect.repeat(withLease(sql, dropOld(sql)), {
      until: Option.isSome,
      schedule: Schedule.spaced("1 second")
    })),
    Effect.asVoid
  )

const today = Effect.map(Clock.currentTimeMillis, dayOf)

const dropOld = (sql: Sql) => Effect.flatMap(today, (day) => dropOldParts(sql, day))

/** All the work. Whoever calls it has the lease. `enough`: entries after which a transaction has enough. */
export const round = Effect.fnUntraced(function*(sql: Sql, enough = 200_000) {
  const [start] = yield* sql<{ readonly horizon: bigint; readonly seq: bigint; readonly at: Date }>`
    SELECT ${horizon(sql)} AS horizon,
      (SELECT last_value FROM feed_seq) AS seq, clock_timestamp() AS at
    FROM feed_slot ORDER BY slot DESC LIMIT 1`
  while (yield* packSome(sql, start!.horizon, enough)) yield* renew(sql)
  yield* sweep(sql)
  yield* sql`UPDATE history_place SET seq = ${start!.seq}, packed_at = now(), swept_at = ${start!.at}`
  yield* dropOld(sql)
  yield* mergeSegments(sql, yield* Clock.currentTimeMillis)
})

const kinds: ReadonlyArray<readonly [number, EntryKind]> = [
  [kindNumber("PropertiesReported"), "property"],
  [kindNumber("EventReported"), "event"]
]

interface FeedRow {
  readonly kind: number
  readonly device: bigint
  readonly xid: bigint
  readonly seq: bigint
  readonly body: Json
  /** Rows that the statement has found, with those beyond {@link enoughBytes}. */
  readonly found: bigint
}

/** Gathers entries from `place` on. Returns where the next ones begin: always between transactions. */
const gather = Effect.fnUntraced(function*(
  sql: Sql,
  { enough, entries, horizon, place }: {
    readonly place: bigint
    readonly horizon: bigint
    readonly enough: number
    readonly entries: HistoryEntries
  }
) {
  let after = { xid: place, seq: -1n }
  let pageSize = minPage
  /** Rows of the last transaction, of which there may be more. */
  let last: Array<FeedRow> = []
  const add = () => {
    for (const { body, device, kind } of last) {
      const [, entryKind] = kinds.find(([number]) => number === kind)!
      for (const [name, time, value] of entriesOf(entryKind, body)) {
        entries.add(Number(device), entryKind, name, time, JSON.stringify(value))
      }
    }
    last = []
  }
  while (true) {
    const rows: ReadonlyArray<FeedRow> = yield* inOrder(
      sql,
      sql<FeedRow>`
        SELECT kind, device, xid, seq, body, found FROM (
          SELECT *, count(*) OVER () AS found, sum(octet_length(body::text))
            OVER (ORDER BY xid, seq ROWS UNBOUNDED PRECEDING) - octet_length(body::text) AS preceding
          FROM (
            SELECT kind, device, xid, seq, body FROM feed
            WHERE (xid, seq) > (${after.xid}, ${after.seq}) AND xid < ${horizon}
              AND kind = ANY(${wholeNumbers(kinds.map(([number]) => number))}::smallint[])
            ORDER BY xid, seq LIMIT ${sql.literal(String(pageSize))}
          ) AS page
        ) AS counted
        WHERE preceding < ${sql.literal(String(enoughBytes))} ORDER BY xid, seq`
    )
    for (const row of rows) {
      if (last.length > 0 && last[0]!.xid !== row.xid) {
        add()
        if (entries.count >= enough || entries.length >= enoughBytes) return row.xid
      }
      last.push(row)
    }
    const isCut = rows.length < Number(rows[0]?.found ?? 0)
    if (!isCut && rows.length < pageSize) {
      add()
      return horizon
    }
    after = rows.at(-1)!
    pageSize = isCut ? minPage : Math.min(maxPage, 2 * pageSize)
  }
})

/** Packs some of what the feed has before the horizon. Returns whether there is more. */
const packSome = Effect.fnUntraced(function*(sql: Sql, horizon: bigint, enough: number) {
  const [from] = yield* sql<{ readonly xid: bigint }>`SELECT xid FROM history_place`
  if (from!.xid >= horizon) return false
  const entries = new HistoryEntries()
  const next = yield* gather(sql, { place: from!.xid, horizon, enough, entries })
  const gathered = entries.all
  const keeps = yield* keepOf(sql, [...new Set(gathered.map(({ device }) => device))])
  const segments = yield* segmentsOf(sql, gathered, (device) => keeps.get(device), yield* today)
  const moved = yield* sql.withTransaction(Effect.gen(function*() {
    const moved = yield* sql`UPDATE history_place SET xid = ${next} WHERE xid = ${from!.xid} RETURNING 1`
    if (moved.length > 0) yield* insertSegments(sql, segments)
    return moved.length > 0
  }))
  return moved && next < horizon
})

/**
 * Removes the segments of devices that were deleted since the last time. They are
 * unreachable since then; what was packed meanwhile goes with them. If that time is in
 * the future, by a clock that was ahead, nobody knows since when: all that the feed names.
 */
const sweep = Effect.fnUntraced(function*(sql: Sql) {
  const gone = yield* sql<{ readonly id: bigint }>`
    SELECT id FROM former_device
    WHERE deleted_at > (SELECT swept_at FROM history_place) - ${longestDeletion}::interval
      OR (SELECT swept_at FROM history_place) > clock_timestamp()`
  for (const [i, { id }] of gone.entries()) {
    yield* sql`DELETE FROM history_segment WHERE device = ${id}`
    if (i % 100 === 99) yield* renew(sql)
  }
})
