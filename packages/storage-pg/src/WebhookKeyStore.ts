/**
 * The keys of webhooks on PostgreSQL.
 */
import { type KeyRing, type KeyRingError, StoreError, type WebhookKeys, WebhookKeyStore } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { type DatabaseError, isForeignKeyViolation, storeError } from "./PgErrors.ts"
import { instant } from "./PgParameters.ts"
import { SealedSecrets } from "./SealedSecrets.ts"
import { placeOf } from "./SecretColumns.ts"

interface KeysRow {
  readonly project_id: string
  readonly current: string
  readonly created_at: Date
  readonly previous: string | null
  readonly previous_until: Date | null
  readonly sealed_with: number
}

const table = "webhook_key"

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const secrets = yield* SealedSecrets

  /** A key that does not open must not sign: an empty one would. */
  const open = ({ project_id, sealed_with }: KeysRow, column: string, text: string) =>
    Effect.fromNullishOr(secrets.tryOpen(sealed_with, text, placeOf(table, project_id, column))).pipe(
      Effect.mapError(() =>
        new StoreError({
          operation: "WebhookKeyStore.get",
          retryable: false,
          cause: new Error(`The webhook key of project ${project_id} does not open`)
        })
      )
    )

  const keysFromRow = Effect.fnUntraced(function*(row: KeysRow): Effect.fn.Return<WebhookKeys, StoreError> {
    return {
      current: yield* open(row, "current", row.current),
      createdAt: row.created_at.getTime(),
      previous: row.previous === null || row.previous_until === null
        ? null
        : { key: yield* open(row, "previous", row.previous), until: row.previous_until.getTime() }
    }
  })

  return WebhookKeyStore.of({
    get: (projectId) =>
      sql<KeysRow>`SELECT * FROM webhook_key WHERE project_id = ${projectId}`.pipe(
        Effect.flatMap(secrets.ready),
        Effect.mapError(storeError("WebhookKeyStore.get")),
        Effect.flatMap(([row]) => row === undefined ? Effect.succeedNone : Effect.asSome(keysFromRow(row)))
      ),
    put: (projectId, before, { createdAt, current, previous }) => {
      const { key, number } = secrets.current()
      const seal = (text: string, column: string) => key.seal(text, placeOf(table, projectId, column))
      const sealed = seal(current, "current")
      return (before === null
        ? sql`INSERT INTO webhook_key (project_id, current, created_at, sealed_with)
            VALUES (${projectId}, ${sealed}, ${instant(createdAt)}, ${number})
            ON CONFLICT DO NOTHING RETURNING project_id`
        : sql`UPDATE webhook_key SET current = ${sealed}, created_at = ${instant(createdAt)},
            previous = ${previous === null ? null : seal(previous.key, "previous")},
            previous_until = ${previous === null ? null : instant(previous.until)}, sealed_with = ${number}
          WHERE project_id = ${projectId} AND created_at = ${instant(before)} RETURNING project_id`).pipe(
          Effect.map((rows) => rows.length > 0 ? "stored" as const : "changed" as const),
          Effect.catchIf(isForeignKeyViolation, () => Effect.succeed("no-project" as const)),
          Effect.mapError(storeError("WebhookKeyStore.put"))
        )
    }
  })
})

export const layer: Layer.Layer<WebhookKeyStore, DatabaseError | KeyRingError, PgClient.PgClient | KeyRing> = Layer
  .effect(WebhookKeyStore, make)
  .pipe(Layer.provide(SealedSecrets.layer))
