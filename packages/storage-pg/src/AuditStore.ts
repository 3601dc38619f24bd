/**
 * The audit log on PostgreSQL.
 */
import { type AuditEntry, AuditStore, type NewAuditEntry, type StoreError } from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { SqlError } from "effect/sql"
import { type Clients, clients } from "./LongReads.ts"
import { storeError } from "./PgErrors.ts"
import { eachByIndex, instant, instants, texts, wholeNumbers } from "./PgParameters.ts"

/**
 * Stands alone: its table refers to no other, so that entries outlive what they
 * tell of. Only writes on the same client share a transaction with their entry.
 */
export const layer: Layer.Layer<AuditStore, never, PgClient.PgClient> = Layer.effect(
  AuditStore,
  Effect.map(clients, (both) => make(both))
)

interface Row {
  readonly id: bigint
  readonly at: Date
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
  id: Number(row.id),
  at: row.at.getTime(),
  projectId: row.project_id,
  keyId: row.key_id,
  keyName: row.key_name,
  action: row.action,
  resource: { kind: row.resource_kind, id: row.resource_id },
  address: row.address,
  result: row.result,
  requestId: row.request_id
})

/** Ends a transaction that has changed nothing: a statement in it may have failed, and then it cannot commit. */
class Unchanged {
  readonly result: unknown

  constructor(result: unknown) {
    this.result = result
  }
}

const make = ({ reads, sql }: Clients) => {
  /** The beginning of a statement that notes which requests were carried out. */
  const noting = (entries: ReadonlyArray<NewAuditEntry>) => {
    const claims = entries.flatMap(({ claim, projectId }) => claim === undefined ? [] : [{ ...claim, projectId }])
    return claims.length === 0 ? sql`` : sql`
      WITH claim AS (
        SELECT * FROM unnest(
          ${texts(claims.map(({ projectId }) => projectId))},
          ${texts(claims.map(({ key }) => key))},
          ${instants(claims.map(({ at }) => at))}
        ) AS claim (project_id, key, claimed_at) ${eachByIndex(sql, claims.length)}
      ), noted AS (
        UPDATE request SET status = 200, body = NULL FROM claim
        WHERE request.project_id = claim.project_id AND request.key = claim.key
          AND request.claimed_at = claim.claimed_at
      )`
  }

  const append = (entries: ReadonlyArray<NewAuditEntry>): Effect.Effect<void, SqlError.SqlError> =>
    entries.length === 0 ? Effect.void : Effect.asVoid(
      sql`${
        noting(entries)
      } INSERT INTO audit_entry (at, project_id, key_id, key_name, action, resource_kind, resource_id, address,
          result, request_id)
        SELECT at, project_id, key_id, key_name, action, resource_kind, resource_id, address, result, request_id
        FROM unnest(
          ${instants(entries.map(({ at }) => at))},
          ${texts(entries.map(({ projectId }) => projectId))},
          ${texts(entries.map(({ keyId }) => keyId))},
          ${texts(entries.map(({ keyName }) => keyName))},
          ${texts(entries.map(({ action }) => action))},
          ${texts(entries.map(({ resource }) => resource.kind))},
          ${texts(entries.map(({ resource }) => resource.id))},
          ${texts(entries.map(({ address }) => address))},
          ${wholeNumbers(entries.map(({ result }) => result))}::int[],
          ${texts(entries.map(({ requestId }) => requestId))}
        ) WITH ORDINALITY AS new (at, project_id, key_id, key_name, action, resource_kind, resource_id, address,
          result, request_id, position)
        ORDER BY position`
    )

  const commit = <A, E, R>(
    write: Effect.Effect<A, E, R>,
    entriesOf: (result: A) => ReadonlyArray<NewAuditEntry> | undefined
  ): Effect.Effect<A, E | StoreError, R> =>
    Effect.flatMap(write, (result): Effect.Effect<A, SqlError.SqlError | Unchanged> => {
      const entries = entriesOf(result)
      return entries === undefined ? Effect.fail(new Unchanged(result)) : Effect.as(append(entries), result)
    }).pipe(
      sql.withTransaction,
      Effect.catch((error): Effect.Effect<A, E | StoreError> => {
        if (error instanceof Unchanged) return Effect.succeed(error.result as A)
        return Effect.fail(SqlError.isSqlError(error) ? storeError("AuditStore.commit")(error) : error)
      })
    )

  return AuditStore.of({
    append: (entries) => Effect.mapError(append(entries), storeError("AuditStore.append")),
    commit,
    read: (projectId, { action, end, keyId, resource, start }, { after, limit }) =>
      reads<Row>`SELECT * FROM audit_entry WHERE ${
        sql.and([
          sql`project_id = ${projectId}`,
          ...keyId === undefined ? [] : [sql`key_id = ${keyId}`],
          ...action === undefined ? [] : [sql`action = ${action}`],
          ...resource === undefined ? [] : [sql`resource_id = ${resource}`],
          ...start === undefined ? [] : [sql`at >= ${instant(start)}`],
          ...end === undefined ? [] : [sql`at < ${instant(end)}`],
          ...after === undefined ? [] : [sql`(at, id) < (${instant(after.at)}, ${after.id}::bigint)`]
        ])
      } ORDER BY at DESC, id DESC LIMIT ${limit}`.pipe(
        Effect.map((rows) => rows.map(fromRow)),
        Effect.mapError(storeError("AuditStore.read"))
      ),
    prune: ({ before, limit }) =>
      sql`DELETE FROM audit_entry WHERE id IN (
          SELECT id FROM audit_entry WHERE at < least(${instant(before)}, now() - interval '1 day')
          ORDER BY at LIMIT ${limit}
        ) RETURNING id`.pipe(
        Effect.map((rows) => rows.length),
        Effect.mapError(storeError("AuditStore.prune"))
      )
  })
}
