/**
 * Merges the segments of a day that has ended into as few as possible.
 */
import { Array, Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { dayOf, pack } from "./HistoryEntries.ts"
import { renew } from "./HistoryPlace.ts"
import { wholeNumbers } from "./PgParameters.ts"
import { decode } from "./SegmentCodec.ts"
import { type Merged, replaceSegments, type Segment } from "./Segments.ts"

type Sql = SqlClient.SqlClient

/** How long after its end a day still gets many entries, milliseconds. */
const settling = 3_600_000
/** How long a day waits that got late entries: others may follow. */
const gathering = "6 hours"

/** Series of one statement, and of one search. */
const seriesAtOnce = 50
const searchSize = 10_000

/** Bytes of segments of one statement. A series that has more stays as it is: its segments are large. */
const maxBytes = 4 * 1024 * 1024
/** Characters of the values of a series. One that has more stays as it is, too. */
const maxLength = 2 * 1024 * 1024

/** Segments of one property or event of a device on one day that are kept for the same time. */
interface Series {
  readonly keep: number
  readonly device: bigint
  readonly series: number
}

interface SizedSeries extends Series {
  readonly bytes: bigint
}

interface Row extends Series {
  readonly seq: bigint
  readonly data: Uint8Array
}

/** Merges the days that have ended, one after the other. `now`: Unix milliseconds. Whoever calls it has the lease. */
export const mergeSegments = Effect.fnUntraced(function*(sql: Sql, now: number) {
  const days = yield* sql<{ readonly day: number }>`
    SELECT day FROM history_unmerged
    WHERE day < ${dayOf(now - settling)} AND marked_at NOT BETWEEN now() - ${gathering}::interval AND clock_timestamp()
    ORDER BY day`
  for (const { day } of days) {
    yield* mergeDay(sql, day)
    yield* sql`DELETE FROM history_unmerged WHERE day = ${day}`
  }
})

/** Merges the segments of a day. */
export const mergeDay = Effect.fnUntraced(function*(sql: Sql, day: number) {
  let after: Series = { keep: -1, device: 0n, series: 0 }
  while (true) {
    const found: ReadonlyArray<Series> = yield* sql<Series>`
      SELECT keep, device, series FROM history_segment
      WHERE day = ${day} AND (keep, device, series) > (${after.keep}, ${after.device}, ${after.series})
      GROUP BY keep, device, series HAVING count(*) > 1
      ORDER BY keep, device, series LIMIT ${searchSize}`
    for (let i = 0; i < found.length; i += seriesAtOnce) {
      yield* mergeSeries(sql, day, found.slice(i, i + seriesAtOnce))
      yield* renew(sql)
    }
    if (found.length < searchSize) return
    after = found.at(-1)!
  }
})

const keyOf = ({ device, keep, series }: Series): string => `${keep} ${device} ${series}`

/** The segments of the series on a day. */
const segmentsOf = (sql: Sql, day: number, series: ReadonlyArray<Series>) =>
  sql`unnest(
      ${wholeNumbers(series.map(({ keep }) => keep))}::smallint[],
      ${wholeNumbers(series.map(({ device }) => Number(device)))}::bigint[],
      ${wholeNumbers(series.map(({ series }) => series))}::int[]
    ) AS wanted (keep, device, series)
    JOIN history_segment AS segment USING (keep, device, series)
    WHERE segment.day = ${day}`

/** The series that are not too large, in parts of at most {@link maxBytes}. */
const partsOf = (series: ReadonlyArray<SizedSeries>): ReadonlyArray<ReadonlyArray<Series>> => {
  const parts: Array<Array<Series>> = []
  let bytes = maxBytes
  for (const each of series) {
    const size = Number(each.bytes)
    if (size > maxBytes) continue
    bytes += size
    if (bytes > maxBytes) {
      parts.push([])
      bytes = size
    }
    parts.at(-1)!.push(each)
  }
  return parts
}

/** Undefined: the series stays as it is. */
const mergedOf = (day: number, rows: ReadonlyArray<Row>): Merged | undefined => {
  const times: Array<number> = []
  const texts: Array<string> = []
  let length = 0
  for (const { data } of rows) {
    const columns = decode(data)
    for (const time of columns.times) times.push(time)
    for (const value of columns.values) {
      const text = JSON.stringify(value)
      texts.push(text)
      length += text.length
    }
    if (length > maxLength) return undefined
  }
  const packed = pack(times, texts)
  if (packed.length >= rows.length) return undefined
  const [{ device, keep, series }] = rows as [Row]
  const [first, ...rest] = packed.map((part): Segment => ({ ...part, device: Number(device), series, day, keep }))
  return { old: rows.map(({ seq }) => seq), segments: [first!, ...rest] }
}

const mergeSeries = Effect.fnUntraced(function*(sql: Sql, day: number, found: ReadonlyArray<Series>) {
  const sized = yield* sql<SizedSeries>`
    SELECT keep, device, series, sum(octet_length(segment.data)) AS bytes
    FROM ${segmentsOf(sql, day, found)} GROUP BY keep, device, series`
  for (const part of partsOf(sized)) {
    const rows = yield* sql<Row>`
      SELECT segment.keep, segment.device, segment.series, segment.seq, segment.data
      FROM ${segmentsOf(sql, day, part)} ORDER BY segment.seq, segment.first`
    const merged: Array<Merged> = []
    for (const group of Object.values(Array.groupBy(rows, keyOf))) {
      const one = mergedOf(day, group)
      if (one !== undefined) merged.push(one)
      // A series takes some milliseconds: others have their turn.
      yield* Effect.yieldNow
    }
    yield* replaceSegments(sql, day, merged)
  }
})
