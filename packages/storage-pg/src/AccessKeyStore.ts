/**
 * Access keys on PostgreSQL.
 */
import { type AccessKey, AccessKeyStore, type ProjectId, type Role } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { paginate } from "./Pagination.ts"
import { isForeignKeyViolation, storeError } from "./PgErrors.ts"
import { instant } from "./PgParameters.ts"

/** Can be replaced alone. Its rows refer to projects in the same database. */
export const layer: Layer.Layer<AccessKeyStore, never, PgClient.PgClient> = Layer.effect(
  AccessKeyStore,
  Effect.map(PgClient.PgClient, (sql) => make(sql))
)

interface Row {
  readonly id: string
  readonly project_id: string
  readonly name: string
  readonly role: string
  readonly hash: string
  readonly created_at: Date
  readonly expires_at: Date | null
}

const fromRow = (row: Row): AccessKey => ({
  id: row.id,
  projectId: row.project_id as ProjectId,
  name: row.name,
  role: row.role as Role,
  hash: row.hash,
  createdAt: row.created_at.getTime(),
  expiresAt: row.expires_at?.getTime() ?? null
})

const make = (sql: PgClient.PgClient) => {
  const insert = (key: AccessKey) =>
    sql`INSERT INTO access_key (id, project_id, name, role, hash, created_at, expires_at)
        VALUES (${key.id}, ${key.projectId}, ${key.name}, ${key.role}, ${key.hash},
          ${instant(key.createdAt)}, ${instant(key.expiresAt)})`

  return AccessKeyStore.of({
    insert: (key) =>
      insert(key).pipe(
        Effect.as(true),
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeed(false)),
        Effect.mapError(storeError("AccessKeyStore.insert"))
      ),
    replaceOwner: (key) =>
      // The lock makes servers that start at the same time take turns.
      sql`LOCK TABLE access_key IN SHARE ROW EXCLUSIVE MODE`.pipe(
        Effect.andThen(sql`DELETE FROM access_key WHERE role = 'owner' OR id = ${key.id}`),
        Effect.andThen(insert(key)),
        sql.withTransaction,
        Effect.asVoid,
        Effect.mapError(storeError("AccessKeyStore.replaceOwner"))
      ),
    find: (id) =>
      sql<Row>`SELECT * FROM access_key WHERE id = ${id}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), fromRow)),
        Effect.mapError(storeError("AccessKeyStore.find"))
      ),
    list: (projectId, page) =>
      paginate<Row>(sql, {
        table: "access_key",
        where: sql`project_id = ${projectId}`,
        tieBreaker: "seq",
        select: sql`SELECT * FROM page`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(fromRow), total })),
        Effect.mapError(storeError("AccessKeyStore.list"))
      ),
    remove: (projectId, id) =>
      sql`DELETE FROM access_key WHERE project_id = ${projectId} AND id = ${id} RETURNING id`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.mapError(storeError("AccessKeyStore.remove"))
      )
  })
}
