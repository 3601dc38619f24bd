/**
 * Removes what has ended in slices, so that no statement takes long.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"

/** A table, and another one with the parts of its rows. Both have the column `id`. */
export interface Whole {
  readonly table: string
  readonly parts: string
  readonly id: string
}

/**
 * Removes parts of rows for which `ended` holds, at most `limit`; and if there are
 * no more than that, the rows themselves, at most `limit`. Returns how many.
 */
export const pruneWithParts = (
  sql: PgClient.PgClient,
  { id, parts, table }: Whole,
  ended: Statement.Fragment,
  limit: number
): Effect.Effect<number, SqlError.SqlError> =>
  Effect.gen(function*() {
    const removed = yield* sql`
      WITH ended AS MATERIALIZED (SELECT ${sql(id)} FROM ${sql(table)} WHERE ${ended} LIMIT ${limit})
      DELETE FROM ${sql(parts)} WHERE ctid = ANY(ARRAY(
        SELECT part.ctid FROM ended JOIN ${sql(parts)} AS part USING (${sql(id)}) LIMIT ${limit}
      )) RETURNING 1`
    if (removed.length === limit) return limit
    // While another node removes parts of a row, the row stays: without them, it takes no others along.
    const whole = yield* sql`
      DELETE FROM ${sql(table)} WHERE ${sql(id)} = ANY(ARRAY(
        SELECT ${sql(id)} FROM ${sql(table)} WHERE ${ended}
          AND NOT EXISTS (SELECT FROM ${sql(parts)} AS part WHERE part.${sql(id)} = ${sql(table)}.${sql(id)})
        LIMIT ${limit}
      )) RETURNING 1`
    return removed.length + whole.length
  })
