/**
 * The keys of webhooks on PostgreSQL.
 */
import { type WebhookKeys, WebhookKeyStore } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { storeError } from "./PgErrors.ts"
import { instant } from "./PgParameters.ts"

interface KeysRow {
  readonly current: string
  readonly created_at: Date
  readonly previous: string | null
  readonly previous_until: Date | null
}

const keysFromRow = (row: KeysRow): WebhookKeys => ({
  current: row.current,
  createdAt: row.created_at.getTime(),
  previous: row.previous === null || row.previous_until === null
    ? null
    : { key: row.previous, until: row.previous_until.getTime() }
})

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient

  return WebhookKeyStore.of({
    get: (projectId) =>
      sql<KeysRow>`SELECT * FROM webhook_key WHERE project_id = ${projectId}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), keysFromRow)),
        Effect.mapError(storeError("WebhookKeyStore.get"))
      ),
    put: (projectId, before, { createdAt, current, previous }) =>
      (before === null
        ? sql`INSERT INTO webhook_key (project_id, current, created_at)
            VALUES (${projectId}, ${current}, ${instant(createdAt)}) ON CONFLICT DO NOTHING RETURNING project_id`
        : sql`UPDATE webhook_key SET current = ${current}, created_at = ${instant(createdAt)},
            previous = ${previous?.key ?? null},
            previous_until = ${previous === null ? null : instant(previous.until)}
          WHERE project_id = ${projectId} AND created_at = ${instant(before)} RETURNING project_id`).pipe(
          Effect.map((rows) => rows.length > 0),
          Effect.mapError(storeError("WebhookKeyStore.put"))
        )
  })
})

export const layer: Layer.Layer<WebhookKeyStore, never, PgClient.PgClient> = Layer.effect(WebhookKeyStore, make)
