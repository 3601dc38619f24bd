/**
 * The keys of webhooks on SQLite.
 */
import { type ProjectId, StoreError, type WebhookKeys, WebhookKeyStore } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { type Place, Secrets } from "./Secrets.ts"
import { Sqlite } from "./Sqlite.ts"

/** Can be replaced alone. Its rows refer to projects in the same database. */
export const layer: Layer.Layer<WebhookKeyStore, never, Sqlite | Secrets> = Layer.effect(
  WebhookKeyStore,
  Effect.map(Effect.all([Sqlite, Secrets]), ([sql, secrets]) => make(sql, secrets))
)

interface Row {
  readonly current: string
  readonly created_at: number
  readonly previous: string | null
  readonly previous_until: number | null
}

const placeOf = (projectId: ProjectId, column: "current" | "previous"): Place => ["webhook_key", projectId, column]

const make = (sql: Sqlite["Service"], secrets: Secrets["Service"]) => {
  /** A key that does not open must not sign: an empty one would. */
  const open = (sealed: string, projectId: ProjectId, column: "current" | "previous") => {
    const key = secrets.open(sealed, placeOf(projectId, column))
    return key === ""
      ? new StoreError({
        operation: "WebhookKeyStore.get",
        retryable: false,
        cause: new Error(`The webhook key of project ${projectId} does not open`)
      })
      : Effect.succeed(key)
  }

  const keysFromRow = Effect.fnUntraced(
    function*({ created_at, current, previous, previous_until }: Row, projectId: ProjectId): Effect.fn.Return<
      WebhookKeys,
      StoreError
    > {
      return {
        current: yield* open(current, projectId, "current"),
        createdAt: created_at,
        previous: previous === null
          ? null
          : { key: yield* open(previous, projectId, "previous"), until: previous_until! }
      }
    }
  )

  return WebhookKeyStore.of({
    get: (projectId) =>
      sql.read("WebhookKeyStore.get", () => sql.get<Row>("SELECT * FROM webhook_key WHERE project_id = ?", [projectId]))
        .pipe(
          Effect.flatMap((row) => row === undefined ? Effect.succeedNone : Effect.asSome(keysFromRow(row, projectId)))
        ),
    put: (projectId, before, { createdAt, current, previous }) =>
      sql.write("WebhookKeyStore.put", () => {
        if (before === null && sql.get("SELECT 1 FROM project WHERE id = ?", [projectId]) === undefined) {
          return "no-project"
        }
        const keys = [
          secrets.seal(current, placeOf(projectId, "current")),
          createdAt,
          previous === null ? null : secrets.seal(previous.key, placeOf(projectId, "previous")),
          previous?.until ?? null,
          projectId
        ]
        const stored = before === null
          ? sql.run(
            `INSERT INTO webhook_key (current, created_at, previous, previous_until, project_id)
              VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
            keys
          )
          : sql.run(
            `UPDATE webhook_key SET current = ?, created_at = ?, previous = ?, previous_until = ?
              WHERE project_id = ? AND created_at = ?`,
            [...keys, before]
          )
        return stored > 0 ? "stored" : "changed"
      })
  })
}
