/**
 * The statements that write segments of the history.
 */
import { PgTypes } from "@effect/sql-pg"
import { Effect, Result } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { type Gathered, pack, type Packed, signs } from "./HistoryEntries.ts"
import { ensureParts } from "./HistoryParts.ts"
import { texts, wholeNumbers } from "./PgParameters.ts"
import { mapInSlices } from "./Slices.ts"

/** A row of `history_segment`. */
export interface Segment extends Packed {
  readonly device: number
  readonly series: number
  readonly day: number
  /** Days; 0: for ever. */
  readonly keep: number
}

/** Segments, and the bytes of them, that one statement writes. */
const maxSegments = 1000
const maxBytes = 4_194_304

const byteArrays = (values: ReadonlyArray<Uint8Array>): PgTypes.Parameter =>
  Result.getOrThrow(PgTypes.array(values, PgTypes.OID.bytea))

/** The number of each name; names that have none get one. */
const numbersOf = Effect.fnUntraced(function*(sql: SqlClient.SqlClient, names: ReadonlyArray<string>) {
  const read = sql<{ readonly name: string; readonly number: number }>`
    SELECT name, number FROM history_name WHERE name = ANY(${texts(names)})`
  const known = yield* read
  if (known.length < names.length) {
    yield* sql`
      INSERT INTO history_name (name)
      SELECT name FROM unnest(${texts(names)}) AS new (name)
      WHERE NOT EXISTS (SELECT FROM history_name AS known WHERE known.name = new.name)
      -- In one order, so that nodes that store at the same time wait for each other in one direction.
      ORDER BY name ON CONFLICT DO NOTHING`
  }
  return new Map((known.length < names.length ? yield* read : known).map(({ name, number }) => [name, number]))
})

/**
 * Packs entries, and makes what their segments need: numbers of names, partitions.
 * `keepOf`: the days to keep what a device has said; undefined: not at all. Entries
 * that are too old are left out.
 */
export const segmentsOf = Effect.fnUntraced(function*(
  sql: SqlClient.SqlClient,
  gathered: ReadonlyArray<Gathered>,
  keepOf: (device: number) => number | undefined,
  today: number
) {
  const wanted = gathered.flatMap((entries) => {
    const keep = keepOf(entries.device)
    return keep === undefined || (keep > 0 && entries.day < today - keep) ? [] : [{ entries, keep }]
  })
  if (wanted.length === 0) return []
  const numbers = yield* numbersOf(sql, [...new Set(wanted.map(({ entries }) => entries.name))])
  yield* ensureParts(sql, wanted.map(({ entries: { day }, keep }) => ({ keep, day })))
  const packed = yield* mapInSlices(
    wanted,
    ({ entries: { day, device, kind, name, texts, times }, keep }) =>
      pack(times, texts).map((part): Segment => ({
        ...part,
        device,
        series: signs[kind] * numbers.get(name)!,
        day,
        keep
      }))
  )
  return packed.flat()
})

const slices = <A extends Segment>(segments: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> => {
  const found: Array<Array<A>> = []
  let bytes = 0
  for (const segment of segments) {
    if (found.length === 0 || found.at(-1)!.length === maxSegments || bytes > maxBytes) {
      found.push([])
      bytes = 0
    }
    found.at(-1)!.push(segment)
    bytes += segment.data.length
  }
  return found
}

/** Writes segments in their order. `seq`: their number; without one each gets the next. */
const insertRows = (
  sql: SqlClient.SqlClient,
  segments: ReadonlyArray<Segment & { readonly seq?: bigint }>
): Effect.Effect<void, SqlError.SqlError> =>
  Effect.forEach(slices(segments), (slice) =>
    sql`
      INSERT INTO history_segment (device, seq, series, day, keep, first, last, count, data)
      SELECT device, coalesce(seq, nextval('history_seq')), series, day, keep, first, last, count, data FROM unnest(
        ${wholeNumbers(slice.map(({ device }) => device))}::bigint[],
        ${wholeNumbers(slice.map(({ seq }) => seq === undefined ? null : Number(seq)))}::bigint[],
        ${wholeNumbers(slice.map(({ series }) => series))}::int[],
        ${wholeNumbers(slice.map(({ day }) => day))}::int[],
        ${wholeNumbers(slice.map(({ keep }) => keep))}::smallint[],
        ${wholeNumbers(slice.map(({ first }) => first))}::int[],
        ${wholeNumbers(slice.map(({ last }) => last))}::int[],
        ${wholeNumbers(slice.map(({ count }) => count))}::int[],
        ${byteArrays(slice.map(({ data }) => data))}
      ) AS new (device, seq, series, day, keep, first, last, count, data)`, { discard: true })

/** Writes segments in the surrounding transaction, in their order, and marks their days as unmerged. */
export const insertSegments = (
  sql: SqlClient.SqlClient,
  segments: ReadonlyArray<Segment>
): Effect.Effect<void, SqlError.SqlError> =>
  Effect.andThen(
    insertRows(sql, segments),
    Effect.asVoid(sql`
      INSERT INTO history_unmerged (day)
      SELECT day FROM unnest(${wholeNumbers([...new Set(segments.map(({ day }) => day))])}::int[]) AS new (day)
      ORDER BY day ON CONFLICT DO NOTHING`)
  )

/** Segments that replace others of the same property or event and day. */
export interface Merged {
  /** The numbers of what they replace, in ascending order. */
  readonly old: ReadonlyArray<bigint>
  readonly segments: readonly [Segment, ...ReadonlyArray<Segment>]
}

/**
 * Replaces segments of a day by fewer. The new ones have the numbers of the last old
 * ones: what was stored after them stays after them, and those that have entries of one
 * time stay in their order. If an old one is gone, nothing is replaced.
 */
export const replaceSegments = (
  sql: SqlClient.SqlClient,
  day: number,
  merged: ReadonlyArray<Merged>
): Effect.Effect<void, SqlError.SqlError> =>
  merged.length === 0 ? Effect.void : replace(sql, day, merged).pipe(
    sql.withTransaction,
    Effect.catchIf((error) => error === "gone", () => Effect.void)
  )

const replace = Effect.fnUntraced(
  function*(sql: SqlClient.SqlClient, day: number, merged: ReadonlyArray<Merged>) {
    const old = merged.flatMap(({ old, segments: [{ device, keep, series }] }) =>
      [...new Set(old)].map((seq) => ({ device, keep, series, seq }))
    )
    const gone = yield* sql`
      DELETE FROM history_segment AS segment USING unnest(
        ${wholeNumbers(old.map(({ keep }) => keep))}::smallint[],
        ${wholeNumbers(old.map(({ device }) => device))}::bigint[],
        ${wholeNumbers(old.map(({ series }) => series))}::int[],
        ${wholeNumbers(old.map(({ seq }) => Number(seq)))}::bigint[]
      ) AS old (keep, device, series, seq)
      WHERE segment.day = ${day} AND segment.keep = old.keep AND segment.device = old.device
        AND segment.series = old.series AND segment.seq = old.seq
      RETURNING 1`
    if (gone.length < merged.reduce((sum, { old }) => sum + old.length, 0)) return yield* Effect.fail("gone" as const)
    yield* insertRows(
      sql,
      merged.flatMap(({ old, segments }) =>
        segments.map((segment, i) => ({ ...segment, seq: old.at(i - segments.length)! }))
      )
    )
  }
)
