/**
 * The audit log on SQLite.
 */
import { type AuditEntry, type AuditFilter, AuditStore, type NewAuditEntry, type StoreError } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { Sqlite, type Value } from "./Sqlite.ts"

/**
 * Stands alone: its table refers to no other, so that entries outlive what they
 * tell of. Only writes of stores in the same file share a transaction with their entry.
 */
export const layer: Layer.Layer<AuditStore, never, Sqlite> = Layer.effect(
  AuditStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

interface Row {
  readonly id: number
  readonly at: number
  readonly project_id: string
  readonly key_id: string
  readonly key_name: string
  readonly action: string
  readonly resource_kind: string
  readonly resource_id: string
  readonly address: string
  readonly result: number
  readonly request_id: string
}

const fromRow = (row: Row): AuditEntry => ({
  id: row.id,
  at: row.at,
  projectId: row.project_id,
  keyId: row.key_id,
  keyName: row.key_name,
  action: row.action,
  resource: { kind: row.resource_kind, id: row.resource_id },
  address: row.address,
  result: row.result,
  requestId: row.request_id
})

/** Ends a transaction that has changed nothing. */
class Unchanged {
  readonly result: unknown

  constructor(result: unknown) {
    this.result = result
  }
}

const conditionsOf = (
  { action, end, keyId, resource, start }: AuditFilter
): ReadonlyArray<readonly [string, Value]> => [
  ...keyId === undefined ? [] : [["key_id = ?", keyId] as const],
  ...action === undefined ? [] : [["action = ?", action] as const],
  ...resource === undefined ? [] : [["resource_id = ?", resource] as const],
  ...start === undefined ? [] : [["at >= ?", start] as const],
  ...end === undefined ? [] : [["at < ?", end] as const]
]

const make = (sql: Sqlite["Service"]) => {
  const append = (entries: ReadonlyArray<NewAuditEntry>) =>
    sql.write("AuditStore.append", () => {
      for (const entry of entries) {
        sql.run(
          `INSERT INTO audit_entry (at, project_id, key_id, key_name, action, resource_kind, resource_id, address,
              result, request_id)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
          [
            entry.at,
            entry.projectId,
            entry.keyId,
            entry.keyName,
            entry.action,
            entry.resource.kind,
            entry.resource.id,
            entry.address,
            entry.result,
            entry.requestId
          ]
        )
        if (entry.claim === undefined) continue
        sql.run(
          "UPDATE request SET status = 200, body = NULL WHERE project_id = ? AND key = ? AND claimed_at = ?",
          [entry.projectId, entry.claim.key, entry.claim.at]
        )
      }
    })

  const commit = <A, E, R>(
    write: Effect.Effect<A, E, R>,
    entriesOf: (result: A) => ReadonlyArray<NewAuditEntry> | undefined
  ): Effect.Effect<A, E | StoreError, R> =>
    sql.within(
      "AuditStore.commit",
      Effect.flatMap(write, (result): Effect.Effect<A, StoreError | Unchanged> => {
        const entries = entriesOf(result)
        return entries === undefined ? Effect.fail(new Unchanged(result)) : Effect.as(append(entries), result)
      })
    ).pipe(
      Effect.catch((error): Effect.Effect<A, E | StoreError> =>
        error instanceof Unchanged ? Effect.succeed(error.result as A) : Effect.fail(error)
      )
    )

  return AuditStore.of({
    append,
    commit,
    read: (projectId, filter, { after, limit }) =>
      sql.read("AuditStore.read", () => {
        const conditions = conditionsOf(filter)
        return sql.all<Row>(
          `SELECT * FROM audit_entry WHERE ${
            [
              "project_id = ?",
              ...conditions.map(([condition]) => condition),
              ...after === undefined ? [] : ["(at, id) < (?, ?)"]
            ].join(" AND ")
          } ORDER BY at DESC, id DESC LIMIT ?`,
          [
            projectId,
            ...conditions.map(([, value]) => value),
            ...after === undefined ? [] : [after.at, after.id],
            limit
          ]
        ).map(fromRow)
      }),
    prune: ({ before, limit }) =>
      sql.write("AuditStore.prune", () =>
        sql.run(
          "DELETE FROM audit_entry WHERE id IN (SELECT id FROM audit_entry WHERE at < ? ORDER BY at LIMIT ?)",
          [before, limit]
        ))
  })
}
