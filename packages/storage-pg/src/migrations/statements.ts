/**
 * A migration that runs statements in order.
 */
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"

export const statements = (
  texts: ReadonlyArray<string>
): Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => Effect.forEach(texts, (text) => sql.unsafe(text), { discard: true }))
