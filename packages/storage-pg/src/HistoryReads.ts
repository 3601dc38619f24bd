/**
 * Reads the history: what is packed, and what the feed has after it.
 *
 * A page is a stretch of days that one statement reads from both, so it has every
 * entry once, whenever the packer runs. Pages follow each other until there is
 * enough.
 */
import type { DeviceId, HistoryRange, Json } from "@device-cloud/core"
import { Effect, Option, Stream } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import { kindNumber } from "./FeedRow.ts"
import { dayOf, type EntryKind, millisOfDay, signs } from "./HistoryEntries.ts"
import { inOrder } from "./OrderedReads.ts"
import { texts } from "./PgParameters.ts"
import { type Columns, decode } from "./SegmentCodec.ts"
import type { Segment } from "./Segments.ts"

/** Entries of one name, by time. */
export interface Run {
  readonly name: string
  /** No entry is before or after, Unix milliseconds. */
  readonly first: number
  readonly last: number
  /** It has at least so many entries. */
  readonly count: number
  /** Unpacks the entries. Times are Unix milliseconds. */
  readonly read: () => Columns
}

/** What is to be read of a device. */
export interface Wanted {
  readonly deviceId: DeviceId
  readonly kind: EntryKind
  readonly names: ReadonlyArray<string>
}

type Range = Pick<HistoryRange, "start" | "end" | "order">

/**
 * Segments of each name on a page, and on the pages after it; a page also has all
 * other segments of its last day.
 */
const sizes = [1, 8, 32] as const

type Row =
  | Pick<Segment, "day" | "first" | "last" | "count" | "data"> & { readonly name: string; readonly place: null }
  | { readonly day: null; readonly body: Json; readonly place: null }
  /** Once: how far the packer is. */
  | { readonly day: null; readonly body: null; readonly place: string }

/** The number that segments and the feed have for the device: its id, or the column that has it. */
const numberOf = (sql: SqlClient.SqlClient, deviceId: DeviceId | Statement.Fragment) =>
  sql`(SELECT coalesce(
    (SELECT id FROM device WHERE device_id = ${deviceId}),
    (SELECT number FROM history_device WHERE device_id = ${deviceId})
  ))`

const feedKinds = { property: kindNumber("PropertiesReported"), event: kindNumber("EventReported") }

/** Whether a row of the feed is not packed. */
const isUnpacked = (sql: SqlClient.SqlClient, kind: EntryKind) =>
  sql`kind = ${feedKinds[kind]} AND xid >= (SELECT xid FROM history_place)`

/** What the feed has of the device that is not packed. */
const unpacked = (sql: SqlClient.SqlClient, deviceId: DeviceId, kind: EntryKind) =>
  sql`FROM feed WHERE device = ${numberOf(sql, deviceId)} AND ${isUnpacked(sql, kind)}`

/** Whether a segment may have entries in the range. */
const isWithin = (sql: SqlClient.SqlClient, { end, start }: Pick<Range, "start" | "end">) => {
  const [first, last] = [dayOf(start), dayOf(end)]
  return sql`day BETWEEN ${first} AND ${last}
    AND (day > ${first} OR last >= ${start - first * millisOfDay})
    AND (day < ${last} OR first <= ${end - last * millisOfDay})`
}

type Entry = readonly [name: string, time: number, value: Json]

/** The entries of a row of the feed. */
export const entriesOf = (kind: EntryKind, body: Json): ReadonlyArray<Entry> =>
  (kind === "property" ? body : [body]) as unknown as ReadonlyArray<Entry>

/**
 * What the feed has of a device that is not packed: the same for all pages that are read while the packer is at
 * the same place. What comes in meanwhile need not be on them. Who keeps this keeps all of it, also while a client
 * reads slowly: what a device says within ten minutes, or less if the packer has much to do.
 */
export class Unpacked {
  /** Where the packer was when this was read; undefined: nothing was read. */
  place: string | undefined
  #byName: ReadonlyMap<string, ReadonlyArray<{ readonly order: number; readonly entry: Entry }>> = new Map()

  /** Takes the place of what was read before if the packer has gone on. */
  take(kind: EntryKind, rows: ReadonlyArray<Row>): void {
    const place = rows.find((row) => row.place !== null)?.place ?? undefined
    if (place === this.place) return
    const byName = new Map<string, Array<{ readonly order: number; readonly entry: Entry }>>()
    let order = 0
    for (const row of rows) {
      if (row.day !== null || row.place !== null) continue
      for (const entry of entriesOf(kind, row.body)) {
        const known = byName.get(entry[0])
        if (known === undefined) byName.set(entry[0], [{ order: order++, entry }])
        else known.push({ order: order++, entry })
      }
    }
    this.place = place
    this.#byName = byName
  }

  /** In the order in which they were stored. */
  of(names: ReadonlyArray<string>): ReadonlyArray<Entry> {
    return names.flatMap((name) => this.#byName.get(name) ?? []).sort((a, b) => a.order - b.order).map(({ entry }) =>
      entry
    )
  }
}

const rowsOf = (
  sql: SqlClient.SqlClient,
  { deviceId, kind, names }: Wanted,
  range: Range,
  size: number,
  place: string | undefined
) =>
  sql<Row>`
    SELECT found.day, history_name.name, found.first, found.last, found.count, found.data, NULL::json AS body,
      NULL::bigint AS xid, found.seq, NULL::text AS place
    FROM history_name CROSS JOIN LATERAL (
      SELECT day, seq, first, last, count, data FROM history_segment
      WHERE device = ${numberOf(sql, deviceId)} AND series = ${signs[kind]} * history_name.number
        AND ${isWithin(sql, range)}
      ORDER BY day ${sql.literal(range.order)}
      FETCH FIRST ${sql.literal(String(size))} ROWS WITH TIES
    ) AS found
    WHERE history_name.name = ANY(${texts(names)})
    UNION ALL
    SELECT NULL, NULL, NULL, NULL, NULL, NULL, body, xid, seq, NULL ${unpacked(sql, deviceId, kind)}
      AND (SELECT xid::text FROM history_place) IS DISTINCT FROM ${place ?? null}
    UNION ALL
    SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, xid::text FROM history_place
    ORDER BY xid NULLS FIRST, seq, first`

/** Where a page ends: before it, at the earlier or later end of the range, are more entries. */
const edgeOf = (rows: ReadonlyArray<Row>, { order }: Range, size: number): number | undefined => {
  const days = new Map<string, Array<number>>()
  for (const row of rows) {
    if (row.day === null) continue
    const known = days.get(row.name)
    if (known === undefined) days.set(row.name, [row.day])
    else known.push(row.day)
  }
  const ends = [...days.values()].filter(({ length }) => length >= size).map((found) =>
    found.reduce((a, b) => order === "asc" ? Math.max(a, b) : Math.min(a, b))
  )
  return ends.length === 0 ? undefined : ends.reduce((a, b) => order === "asc" ? Math.min(a, b) : Math.max(a, b))
}

interface Page {
  /** In the order in which they were stored. */
  readonly runs: ReadonlyArray<Run>
  /** What is left of the range; undefined: nothing. */
  readonly rest: Range | undefined
}

const pageOf = (
  rows: ReadonlyArray<Row>,
  unpacked: ReadonlyArray<Entry>,
  range: Range,
  size: number
): Page => {
  const { end, order, start } = range
  const edge = edgeOf(rows, range, size)
  const [from, to] = edge === undefined
    ? [start, end]
    : order === "asc"
    ? [start, Math.min(end, (edge + 1) * millisOfDay - 1)]
    : [Math.max(start, edge * millisOfDay), end]
  const isIn = (time: number) => time >= from && time <= to
  const runs: Array<Run> = []
  for (const row of rows) {
    if (row.day !== null && row.day >= dayOf(from) && row.day <= dayOf(to)) {
      const { count, data, name } = row
      const day = row.day * millisOfDay
      const [first, last] = [day + row.first, day + row.last]
      const isWhole = isIn(first) && isIn(last)
      const read = (): Columns => {
        const { times, values } = decode(data)
        const columns = { times: times.map((time) => day + time), values }
        return isWhole ? columns : within(columns, isIn)
      }
      runs.push({ name, first: Math.max(first, from), last: Math.min(last, to), count: isWhole ? count : 0, read })
    }
  }
  for (const [name, time, value] of unpacked) {
    if (isIn(time)) {
      runs.push({ name, first: time, last: time, count: 1, read: () => ({ times: [time], values: [value] }) })
    }
  }
  const rest = order === "asc" ? { start: to + 1, end, order } : { start, end: from - 1, order }
  return { runs, rest: edge === undefined || rest.start > rest.end ? undefined : rest }
}

const within = ({ times, values }: Columns, isIn: (time: number) => boolean): Columns => ({
  times: times.filter(isIn),
  values: values.filter((_, i) => isIn(times[i]!))
})

/**
 * The entries of a range in pages: all that a page has come before or after all of
 * the next page, by time. `largest`: segments of each name on a page. `known`: what other pages of the same
 * device and kind have read.
 */
export const pages = (
  sql: SqlClient.SqlClient,
  wanted: Wanted,
  range: Range,
  largest = 32,
  known?: Unpacked
): Stream.Stream<ReadonlyArray<Run>, SqlError.SqlError> =>
  wanted.names.length === 0 ? Stream.empty : Stream.suspend(() => {
    const unpacked = known ?? new Unpacked()
    return Stream.paginate(
      { rest: range, place: 0 },
      ({ place, rest }) => {
        const size = Math.min(largest, sizes[Math.min(place, sizes.length - 1)]!)
        return Effect.map(rowsOf(sql, wanted, rest, size, unpacked.place), (rows) => {
          unpacked.take(wanted.kind, rows)
          const page = pageOf(rows, unpacked.of(wanted.names), rest, size)
          const next = Option.map(Option.fromUndefinedOr(page.rest), (rest) => ({ rest, place: place + 1 }))
          return [[page.runs], next] as const
        })
      }
    )
  })

/** Returns those of the runs that have the first entries, or the last ones if the order is `desc`: at least `limit`. */
export const outermost = (
  runs: ReadonlyArray<Run>,
  { limit, order }: Pick<HistoryRange, "limit" | "order">
): ReadonlyArray<Run> => {
  const isAscending = order === "asc"
  const nearest = ({ first, last }: Run) => isAscending ? first : -last
  const farthest = ({ first, last }: Run) => isAscending ? last : -first
  const picked = new Set<Run>()
  let [count, reached] = [0, -Infinity]
  for (const run of runs.toSorted((a, b) => nearest(a) - nearest(b))) {
    if (count >= limit && nearest(run) > reached) break
    picked.add(run)
    count += run.count
    reached = Math.max(reached, farthest(run))
  }
  return runs.filter((run) => picked.has(run))
}

/** Numbers of names are below. */
const maxNumber = 2_147_483_647

/** The names of all properties or events that the device has history of. */
export const namesOf = (
  sql: SqlClient.SqlClient,
  deviceId: DeviceId,
  kind: EntryKind
): Effect.Effect<ReadonlyArray<string>, SqlError.SqlError> => {
  const [after, until] = kind === "property" ? [0, maxNumber] : [-maxNumber, -1]
  const next = sql.literal(`SELECT series FROM history_segment
      WHERE history_segment.device = known.device AND history_segment.series > known.series
        AND history_segment.series <= ${until}
      ORDER BY history_segment.series LIMIT 1`)
  return Effect.map(
    sql<{ readonly name: string; readonly body: null } | { readonly name: null; readonly body: Json }>`
      WITH RECURSIVE known (device, series) AS (
        SELECT ${numberOf(sql, deviceId)}, ${after}::int
        UNION ALL
        SELECT device, (${next}) FROM known WHERE series IS NOT NULL
      )
      SELECT name, NULL::json AS body FROM history_name
      WHERE number IN (SELECT ${signs[kind]} * series FROM known WHERE series <> ${after})
      UNION ALL
      SELECT NULL, body ${unpacked(sql, deviceId, kind)}`,
    (rows) => [
      ...new Set(rows.flatMap((row) => row.name === null ? entriesOf(kind, row.body).map(([name]) => name) : row.name))
    ]
  )
}

/**
 * As `HistoryStore.devicesWithin`. Each device is looked up by itself, in the order of the indexes: a plan that
 * expects to find one soon else reads a whole table for each device that is not there. Of the feed only the parts
 * are read that have something unpacked. The operator that takes an element out of JSON refuses texts with NUL.
 */
export const devicesWithin = (
  sql: SqlClient.SqlClient,
  deviceIds: ReadonlyArray<DeviceId>,
  range: Pick<Range, "start" | "end">
): Effect.Effect<ReadonlyArray<DeviceId>, SqlError.SqlError> =>
  Effect.map(
    inOrder(
      sql,
      sql<{ readonly device_id: DeviceId }>`
        WITH asked AS MATERIALIZED (
          SELECT device_id, ${numberOf(sql, sql.literal("asked.device_id"))} AS number
          FROM unnest(${texts(deviceIds)}) AS asked (device_id)
        ), oldest AS (
          SELECT min(slot) AS slot FROM feed_slot WHERE EXISTS (
            SELECT FROM feed WHERE feed.slot = feed_slot.slot AND xid >= (SELECT xid FROM history_place)
          )
        )
        SELECT device_id FROM asked CROSS JOIN LATERAL (
          SELECT 1 FROM history_segment WHERE device = asked.number AND series > 0 AND ${isWithin(sql, range)}
          UNION ALL
          SELECT 1 FROM feed CROSS JOIN json_array_elements(body) AS entry (parts)
          CROSS JOIN json_array_elements(parts) WITH ORDINALITY AS part (json, place)
          WHERE device = asked.number AND ${isUnpacked(sql, "property")} AND slot >= (SELECT slot FROM oldest)
            AND CASE WHEN place = 2 THEN part.json::text::float8 BETWEEN ${range.start} AND ${range.end} END
          LIMIT 1
        ) AS found`
    ),
    (rows) => rows.map(({ device_id }) => device_id)
  )
