/**
 * Reads in the order of an index: of a part of the feed, of devices that a search finds.
 */
import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"

/**
 * Runs a read with plans that follow the order of an index and stop at the limit.
 * The planner knows little of a table that is new or of a search that finds much, and else reads and sorts all of it.
 */
export const inOrder = <A>(
  sql: SqlClient.SqlClient,
  read: Effect.Effect<A, SqlError.SqlError>
): Effect.Effect<A, SqlError.SqlError> =>
  sql.withTransaction(Effect.andThen(
    sql`SELECT set_config(name, 'off', true)
      FROM unnest(ARRAY['enable_sort', 'enable_seqscan', 'enable_bitmapscan', 'jit']) AS name`,
    read
  ))
