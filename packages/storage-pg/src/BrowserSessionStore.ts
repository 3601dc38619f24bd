/**
 * Browser sessions on PostgreSQL.
 */
import { BrowserSessionStore } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { storeError } from "./PgErrors.ts"
import { instant } from "./PgParameters.ts"

/** Goes with `AccessKeyStore`: its rows refer to access keys in the same database. */
export const layer: Layer.Layer<BrowserSessionStore, never, PgClient.PgClient> = Layer.effect(
  BrowserSessionStore,
  Effect.map(PgClient.PgClient, (sql) => make(sql))
)

interface Row {
  readonly hash: string
  readonly access_key_id: string
  readonly created_at: Date
  readonly expires_at: Date
}

const make = (sql: PgClient.PgClient) =>
  BrowserSessionStore.of({
    insert: ({ accessKeyId, createdAt, expiresAt, hash }, limit) =>
      Effect.gen(function*() {
        // Sign-ins with one key take turns.
        const keys = yield* sql`SELECT FROM access_key WHERE id = ${accessKeyId} FOR NO KEY UPDATE`
        if (keys.length === 0) return false
        yield* sql`INSERT INTO browser_session (hash, access_key_id, created_at, expires_at)
          VALUES (${hash}, ${accessKeyId}, ${instant(createdAt)}, ${instant(expiresAt)})`
        yield* sql`DELETE FROM browser_session WHERE hash IN (
          SELECT hash FROM browser_session WHERE access_key_id = ${accessKeyId}
          ORDER BY created_at DESC, seq DESC OFFSET ${limit})`
        return true
      }).pipe(sql.withTransaction, Effect.mapError(storeError("BrowserSessionStore.insert"))),
    find: (hash) =>
      sql<Row>`SELECT * FROM browser_session WHERE hash = ${hash}`.pipe(
        Effect.map(([row]) =>
          Option.map(Option.fromUndefinedOr(row), (row) => ({
            hash: row.hash,
            accessKeyId: row.access_key_id,
            createdAt: row.created_at.getTime(),
            expiresAt: row.expires_at.getTime()
          }))
        ),
        Effect.mapError(storeError("BrowserSessionStore.find"))
      ),
    remove: (hash) =>
      sql`DELETE FROM browser_session WHERE hash = ${hash} RETURNING hash`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.mapError(storeError("BrowserSessionStore.remove"))
      ),
    prune: ({ before, limit }) =>
      sql`DELETE FROM browser_session WHERE ctid = ANY(ARRAY(
          SELECT ctid FROM browser_session WHERE expires_at < ${instant(before)} LIMIT ${limit}
        )) RETURNING hash`.pipe(
        Effect.map((rows) => rows.length),
        Effect.mapError(storeError("BrowserSessionStore.prune"))
      )
  })
