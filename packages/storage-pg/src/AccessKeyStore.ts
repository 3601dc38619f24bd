/**
 * Access keys on PostgreSQL.
 */
import { type AccessKey, AccessKeyStore, type ProjectId, type Role } from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import type { Statement } from "effect/sql"
import { type Clients, clients } from "./LongReads.ts"
import { paginate } from "./Pagination.ts"
import { isForeignKeyViolation, storeError } from "./PgErrors.ts"
import { instant, instants, texts } from "./PgParameters.ts"

/** Can be replaced alone. Its rows refer to projects in the same database. */
export const layer: Layer.Layer<AccessKeyStore, never, PgClient.PgClient> = Layer.effect(
  AccessKeyStore,
  Effect.map(clients, (both) => make(both))
)

interface Row {
  readonly id: string
  readonly project_id: string
  readonly name: string
  readonly role: string
  readonly hash: string
  readonly created_at: Date
  readonly expires_at: Date | null
  readonly products: readonly [string, ...Array<string>] | null
  readonly actions: readonly [string, ...Array<string>] | null
  readonly addresses: ReadonlyArray<string> | null
  readonly created_by: string | null
  readonly last_used_at: Date | null
}

const fromRow = (row: Row): AccessKey => ({
  id: row.id,
  projectId: row.project_id as ProjectId,
  name: row.name,
  role: row.role as Role,
  hash: row.hash,
  createdAt: row.created_at.getTime(),
  expiresAt: row.expires_at?.getTime() ?? null,
  scopes: {
    ...row.products === null ? {} : { products: row.products },
    ...row.actions === null ? {} : { actions: row.actions }
  },
  addresses: row.addresses,
  createdBy: row.created_by,
  lastUsedAt: row.last_used_at?.getTime() ?? null
})

const make = ({ reads, sql }: Clients) => {
  const list = (values: ReadonlyArray<string> | null | undefined) => values == null ? null : texts(values)

  const insert = (key: AccessKey) =>
    sql`INSERT INTO access_key (id, project_id, name, role, hash, created_at, expires_at, products, actions, addresses,
          created_by, last_used_at)
        SELECT ${key.id}, ${key.projectId}, ${key.name}, ${key.role}, ${key.hash},
          ${instant(key.createdAt)}::timestamptz, ${instant(key.expiresAt)}::timestamptz,
          ${list(key.scopes.products)}::text[], ${list(key.scopes.actions)}::text[], ${list(key.addresses)}::text[],
          ${key.createdBy}::text, ${instant(key.lastUsedAt)}::timestamptz
        WHERE ${key.createdBy}::text IS NULL OR EXISTS (SELECT FROM access_key WHERE id = ${key.createdBy}::text)
        RETURNING id`

  /** Nobody adds or removes keys meanwhile. */
  const alone = sql`LOCK TABLE access_key IN SHARE ROW EXCLUSIVE MODE`

  /** Removes keys, with `cascade` also those that come from them, and returns their ids. */
  const removeFrom = (first: Statement.Fragment, cascade: boolean) =>
    Effect.map(
      sql<{ readonly id: string }>`
        WITH RECURSIVE gone AS (
          SELECT id FROM access_key WHERE ${first} AND role <> 'owner'
          UNION
          SELECT access_key.id FROM access_key JOIN gone ON access_key.created_by = gone.id
          WHERE ${cascade} AND role <> 'owner'
        )
        DELETE FROM access_key WHERE id IN (SELECT id FROM gone) RETURNING id`,
      (rows) => rows.map(({ id }) => id)
    )

  return AccessKeyStore.of({
    insert: (key) =>
      insert(key).pipe(
        Effect.map((rows) => rows.length > 0 ? "inserted" as const : "no-creator" as const),
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeed("no-project" as const)),
        Effect.mapError(storeError("AccessKeyStore.insert"))
      ),
    replaceOwner: (key) =>
      // The lock makes servers that start at the same time take turns.
      alone.pipe(
        Effect.andThen(
          sql`DELETE FROM access_key WHERE (role = 'owner' OR id = ${key.id})
            AND NOT (id = ${key.id} AND hash = ${key.hash} AND role = 'owner')`
        ),
        Effect.andThen(sql`SELECT FROM access_key WHERE id = ${key.id}`),
        Effect.flatMap((known) => known.length > 0 ? Effect.void : Effect.asVoid(insert(key))),
        sql.withTransaction,
        Effect.mapError(storeError("AccessKeyStore.replaceOwner"))
      ),
    find: (id) =>
      sql<Row>`SELECT * FROM access_key WHERE id = ${id}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), fromRow)),
        Effect.mapError(storeError("AccessKeyStore.find"))
      ),
    list: (projectId, page) =>
      paginate<Row>(reads, {
        table: "access_key",
        where: sql`project_id = ${projectId}`,
        tieBreaker: "seq",
        select: sql`SELECT * FROM page`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(fromRow), total })),
        Effect.mapError(storeError("AccessKeyStore.list"))
      ),
    remove: (projectId, id, options) =>
      alone.pipe(
        Effect.andThen(
          options?.cascade === true
            ? Effect.void
            : Effect.asVoid(sql`UPDATE access_key SET created_by = gone.created_by FROM access_key AS gone
                WHERE gone.project_id = ${projectId} AND gone.id = ${id} AND gone.role <> 'owner'
                  AND access_key.created_by = gone.id`)
        ),
        Effect.andThen(removeFrom(sql`project_id = ${projectId} AND id = ${id}`, options?.cascade === true)),
        sql.withTransaction,
        Effect.mapError(storeError("AccessKeyStore.remove"))
      ),
    removeDescendants: (id) =>
      alone.pipe(
        Effect.andThen(removeFrom(sql`created_by = ${id}`, true)),
        sql.withTransaction,
        Effect.mapError(storeError("AccessKeyStore.removeDescendants"))
      ),
    markUsed: (uses) => {
      // Sorted, so that nodes that note the same keys wait for each other in one order.
      const sorted = uses.toSorted((a, b) => a.id < b.id ? -1 : 1)
      return sql`UPDATE access_key SET last_used_at = used.at
        FROM unnest(${texts(sorted.map(({ id }) => id))}, ${instants(sorted.map(({ at }) => at))}) AS used (id, at)
        WHERE access_key.id = used.id AND (last_used_at IS NULL OR last_used_at < used.at)`.pipe(
        Effect.asVoid,
        Effect.mapError(storeError("AccessKeyStore.markUsed"))
      )
    }
  })
}
