/**
 * Removes what has ended, with its many parts, in slices: no statement takes long.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { wholeNumbers } from "./PgParameters.ts"

/** A table, and another one with the parts of its rows. Both have the column `id`. */
export interface Whole {
  readonly table: string
  readonly parts: string
  readonly id: string
}

/** Parts that one statement removes: some milliseconds. */
const sliceSize = 1000

/**
 * Removes rows for which `ended` holds, now and for ever, at most `limit`, after
 * their parts. Returns how many rows.
 */
export const pruneWithParts = (
  sql: PgClient.PgClient,
  { id, parts, table }: Whole,
  ended: Statement.Fragment,
  limit: number
): Effect.Effect<number, SqlError.SqlError> =>
  Effect.gen(function*() {
    const rows = yield* sql<{ readonly id: bigint }>`
      SELECT ${sql(id)} AS id FROM ${sql(table)} WHERE ${ended} LIMIT ${limit}`
    if (rows.length === 0) return 0
    const ids = wholeNumbers(rows.map(({ id }) => Number(id)))
    for (let removed = sliceSize; removed === sliceSize;) {
      const slice = yield* sql`DELETE FROM ${sql(parts)} WHERE ctid = ANY(ARRAY(
          SELECT ctid FROM ${sql(parts)} WHERE ${sql(id)} = ANY(${ids}::bigint[]) LIMIT ${sliceSize}
        )) RETURNING 1`
      removed = slice.length
      yield* Effect.yieldNow
    }
    // Parts that another node has in hand go with their row.
    const gone = yield* sql`DELETE FROM ${sql(table)} WHERE ${sql(id)} = ANY(${ids}::bigint[]) RETURNING 1`
    return gone.length
  })
