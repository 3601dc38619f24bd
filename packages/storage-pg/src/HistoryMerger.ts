/**
 * Merges the segments of a day that has ended into as few as possible.
 */
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { dayOf, pack } from "./HistoryEntries.ts"
import { renew } from "./HistoryPlace.ts"
import { wholeNumbers } from "./PgParameters.ts"
import { decode } from "./SegmentCodec.ts"
import { type Merged, replaceSegments, type Segment } from "./Segments.ts"
import { mapInSlices } from "./Slices.ts"

type Sql = SqlClient.SqlClient

/** How long after its end a day still gets many entries, milliseconds. */
const settling = 3_600_000
/** How long a day waits that got late entries: others may follow. */
const gathering = "6 hours"

/** Series of one statement, and of one search. */
const seriesAtOnce = 50
const searchSize = 10_000

/** Segments of one property or event of a device on one day that are kept for the same time. */
interface Series {
  readonly keep: number
  readonly device: bigint
  readonly series: number
}

interface Row extends Series {
  readonly seq: bigint
  readonly data: Uint8Array
}

/** Merges the days that have ended, one after the other. `now`: Unix milliseconds. Whoever calls it has the lease. */
export const mergeSegments = Effect.fnUntraced(function*(sql: Sql, now: number) {
  const days = yield* sql<{ readonly day: number; readonly marked_at: Date }>`
    SELECT day, marked_at FROM history_unmerged
    WHERE day < ${dayOf(now - settling)} AND marked_at < now() - ${gathering}::interval ORDER BY day`
  for (const { day, marked_at } of days) {
    yield* mergeDay(sql, day)
    yield* sql`DELETE FROM history_unmerged WHERE day = ${day} AND marked_at = ${marked_at}`
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

const mergeSeries = Effect.fnUntraced(function*(sql: Sql, day: number, found: ReadonlyArray<Series>) {
  const rows = yield* sql<Row>`
    SELECT segment.keep, segment.device, segment.series, segment.seq, segment.data
    FROM unnest(
      ${wholeNumbers(found.map(({ keep }) => keep))}::smallint[],
      ${wholeNumbers(found.map(({ device }) => Number(device)))}::bigint[],
      ${wholeNumbers(found.map(({ series }) => series))}::int[]
    ) AS wanted (keep, device, series)
    JOIN history_segment AS segment USING (keep, device, series)
    WHERE segment.day = ${day} ORDER BY segment.seq, segment.first`
  const groups = new Map<string, Array<Row>>()
  for (const row of rows) {
    const key = keyOf(row)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [row])
    else group.push(row)
  }
  const merged = yield* mapInSlices([...groups.values()], (group): Merged => {
    const columns = group.map(({ data }) => decode(data))
    const packed = pack(
      columns.flatMap(({ times }) => times),
      columns.flatMap(({ values }) => values.map((value) => JSON.stringify(value)))
    )
    const [{ device, keep, series }] = group as [Row]
    const [first, ...rest] = packed.map((part): Segment => ({ ...part, device: Number(device), series, day, keep }))
    return { old: group.map(({ seq }) => seq), segments: [first!, ...rest] }
  })
  yield* replaceSegments(sql, day, merged.filter(({ old, segments }) => segments.length < old.length))
})
