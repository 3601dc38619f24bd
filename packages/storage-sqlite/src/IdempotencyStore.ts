/**
 * Replies to requests with an idempotency key, on SQLite.
 */
import { type Claim, IdempotencyStore } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { Sqlite } from "./Sqlite.ts"

/** Stands alone: its table refers to no other. */
export const layer: Layer.Layer<IdempotencyStore, never, Sqlite> = Layer.effect(
  IdempotencyStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

interface Row {
  readonly fingerprint: string
  readonly claimed_at: number
  readonly status: number | null
  readonly body: string | null
}

const make = (sql: Sqlite["Service"]) =>
  IdempotencyStore.of({
    claim: ({ answerExpiredBefore, at, claimExpiredBefore, fingerprint, key, projectId }) =>
      sql.write("IdempotencyStore.claim", (): Claim => {
        const known = sql.get<Row>("SELECT * FROM request WHERE project_id = ? AND key = ?", [projectId, key])
        const expiredBefore = known?.status === null ? claimExpiredBefore : answerExpiredBefore
        if (known === undefined || known.claimed_at < expiredBefore) {
          sql.run(
            "INSERT OR REPLACE INTO request (project_id, key, fingerprint, claimed_at) VALUES (?, ?, ?, ?)",
            [projectId, key, fingerprint, at]
          )
          return { _tag: "Claimed" }
        }
        const { body, status } = known
        return status === null
          ? { _tag: "InProgress", fingerprint: known.fingerprint }
          : { _tag: "Answered", fingerprint: known.fingerprint, answer: { status, body } }
      }),
    answer: ({ at, key, projectId }, { body, status }) =>
      sql.write("IdempotencyStore.answer", () => {
        sql.run("UPDATE request SET status = ?, body = ? WHERE project_id = ? AND key = ? AND claimed_at = ?", [
          status,
          body,
          projectId,
          key,
          at
        ])
      }),
    release: ({ at, key, projectId }) =>
      sql.write("IdempotencyStore.release", () => {
        sql.run("DELETE FROM request WHERE project_id = ? AND key = ? AND claimed_at = ? AND status IS NULL", [
          projectId,
          key,
          at
        ])
      }),
    count: (projectId, limit) =>
      sql.read("IdempotencyStore.count", () =>
        sql.get<{ readonly count: number }>(
          "SELECT count(*) AS count FROM (SELECT 1 FROM request WHERE project_id = ? LIMIT ?)",
          [projectId, limit]
        )!.count),
    prune: ({ claimedBefore, limit }) =>
      sql.write("IdempotencyStore.prune", () =>
        sql.run("DELETE FROM request WHERE rowid IN (SELECT rowid FROM request WHERE claimed_at < ? LIMIT ?)", [
          claimedBefore,
          limit
        ]))
  })
