/**
 * The client for statements that read many rows. Short statements share
 * connections, and one that takes long holds up all that share its connection:
 * devices that report, and other projects.
 */
import { PgClient } from "@effect/sql-pg"
import { Context, Effect } from "effect"

/** Default: the client of all other statements. */
export const LongReads = Context.Reference<PgClient.PgClient | undefined>("@device-cloud/storage-pg/LongReads", {
  defaultValue: () => undefined
})

/** The clients of a store. */
export interface Clients {
  /** For short statements and transactions. */
  readonly sql: PgClient.PgClient
  /** For statements about many rows: pages of lists, histories, exports, what is forgotten. */
  readonly reads: PgClient.PgClient
}

export const clients: Effect.Effect<Clients, never, PgClient.PgClient> = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  return { sql, reads: (yield* LongReads) ?? sql }
})
