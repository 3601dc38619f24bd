/**
 * What the planner knows of tables to which one transaction adds many rows.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql"

/** Fewer new rows are few, whatever a plan does with them. */
const many = 1000

/**
 * Tells the planner of the rows that the transaction has added to `table`, if they are
 * many. Autovacuum does so up to a minute later; until then statements keep the plans from
 * the time when the table was small, which compare each of the new rows with each. When
 * the transaction ends, all connections make these plans anew. Another analysis of the
 * table that runs at this moment is not waited for.
 */
export const noteAdded = (
  sql: PgClient.PgClient,
  table: string,
  added: number
): Effect.Effect<unknown, SqlError.SqlError> => added < many ? Effect.void : sql`ANALYZE (SKIP_LOCKED) ${sql(table)}`
