/**
 * Replies to requests with an idempotency key, on PostgreSQL.
 */
import { type Claim, IdempotencyStore } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { storeError } from "./PgErrors.ts"
import { instant } from "./PgParameters.ts"

/** Stands alone: its table refers to no other. Requests of a project go with it if `ProjectStore` is on the same database. */
export const layer: Layer.Layer<IdempotencyStore, never, PgClient.PgClient> = Layer.effect(
  IdempotencyStore,
  Effect.map(PgClient.PgClient, (sql) => make(sql))
)

interface Row {
  readonly claimed: boolean
  readonly fingerprint: string
  readonly status: number | null
  readonly body: string | null
}

const claimOf = (row: Row): Claim => {
  if (row.claimed) return { _tag: "Claimed" }
  const { body, fingerprint, status } = row
  return status === null
    ? { _tag: "InProgress", fingerprint }
    : { _tag: "Answered", fingerprint, answer: { status, body } }
}

const make = (sql: PgClient.PgClient) =>
  IdempotencyStore.of({
    claim: ({ answerExpiredBefore, at, claimExpiredBefore, fingerprint, key, projectId }) =>
      sql<Row>`
        WITH claimed AS (
          INSERT INTO request AS known (project_id, key, fingerprint, claimed_at)
          VALUES (${projectId}, ${key}, ${fingerprint}, ${instant(at)})
          ON CONFLICT (project_id, key) DO UPDATE SET
            fingerprint = excluded.fingerprint, claimed_at = excluded.claimed_at, status = NULL, body = NULL
          WHERE known.claimed_at < CASE WHEN known.status IS NULL
            THEN ${instant(claimExpiredBefore)}::timestamptz ELSE ${instant(answerExpiredBefore)}::timestamptz END
          RETURNING key
        )
        SELECT true AS claimed, '' AS fingerprint, NULL::int AS status, NULL AS body FROM claimed
        UNION ALL
        SELECT false, fingerprint, status, body FROM request
        WHERE project_id = ${projectId} AND key = ${key} AND NOT EXISTS (SELECT FROM claimed)`.pipe(
        // No row: another caller has claimed or released the request since this statement began, and it does not see that.
        Effect.repeat({ while: (rows) => rows.length === 0 }),
        Effect.map(([row]): Claim => claimOf(row!)),
        Effect.mapError(storeError("IdempotencyStore.claim"))
      ),
    answer: ({ at, key, projectId }, { body, status }) =>
      sql`UPDATE request SET status = ${status}, body = ${body}
        WHERE project_id = ${projectId} AND key = ${key} AND claimed_at = ${instant(at)}`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("IdempotencyStore.answer"))
      ),
    release: ({ at, key, projectId }) =>
      sql`DELETE FROM request
        WHERE project_id = ${projectId} AND key = ${key} AND claimed_at = ${instant(at)} AND status IS NULL`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("IdempotencyStore.release"))
      ),
    count: (projectId, limit) =>
      sql<{ readonly count: number }>`
        SELECT count(*)::int AS count FROM (SELECT FROM request WHERE project_id = ${projectId} LIMIT ${limit}) AS used`
        .pipe(
          Effect.map(([row]) => row!.count),
          Effect.mapError(storeError("IdempotencyStore.count"))
        ),
    prune: ({ claimedBefore, limit }) =>
      sql<{ readonly key: string }>`
        DELETE FROM request WHERE ctid = ANY(ARRAY(
          SELECT ctid FROM request WHERE claimed_at < ${instant(claimedBefore)} LIMIT ${limit}
        )) RETURNING key`.pipe(
        Effect.map((rows) => rows.length),
        Effect.mapError(storeError("IdempotencyStore.prune"))
      )
  })
