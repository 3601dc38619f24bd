/**
 * Projects on PostgreSQL.
 */
import { type Project, type ProjectId, ProjectStore } from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { type Clients, clients } from "./LongReads.ts"
import { paginate } from "./Pagination.ts"
import { isForeignKeyViolation, storeError } from "./PgErrors.ts"
import { instant } from "./PgParameters.ts"

/** Part of the group that is replaced together: products refer to projects. */
export const layer: Layer.Layer<ProjectStore, never, PgClient.PgClient> = Layer.effect(
  ProjectStore,
  Effect.map(clients, (both) => make(both))
)

interface Row {
  readonly id: string
  readonly name: string
  readonly created_at: Date
}

const fromRow = (row: Row): Project => ({
  id: row.id as ProjectId,
  name: row.name,
  createdAt: row.created_at.getTime()
})

/** What is counted of a project and goes with it. */
const counted = ["access_key", "scene", "job", "device_group", "subscription"]

const make = ({ reads, sql }: Clients) => {
  /**
   * Whoever adds access keys locks their table before the project, and whoever removes
   * something that is counted locks it before its count: so does this. The foreign keys
   * alone would remove the counts before some of what they count.
   */
  const remove = Effect.fnUntraced(function*(id: ProjectId) {
    yield* sql`LOCK TABLE access_key IN ROW EXCLUSIVE MODE`
    // Nothing is added to the project from here on.
    yield* sql`SELECT FROM project WHERE id = ${id} FOR UPDATE`
    const parts = counted.map((table) =>
      sql`${sql(`${table}_rows`)} AS (DELETE FROM ${sql(table)} WHERE project_id = ${id})`
    )
    const rows = yield* sql`WITH executions AS (
        DELETE FROM scene_execution WHERE scene_id IN (SELECT scene_id FROM scene WHERE project_id = ${id})
      ), requests AS (
        DELETE FROM request WHERE project_id = ${id}
      ), ${sql.csv(parts)}
      DELETE FROM project WHERE id = ${id} RETURNING id`
    return rows.length > 0 ? "removed" as const : "not-found" as const
  }, sql.withTransaction)

  return ProjectStore.of({
    insert: ({ createdAt, id, name }) =>
      sql`INSERT INTO project (id, name, created_at) VALUES (${id}, ${name}, ${instant(createdAt)})
          ON CONFLICT DO NOTHING RETURNING id`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.mapError(storeError("ProjectStore.insert"))
      ),
    get: (id) =>
      sql<Row>`SELECT id, name, created_at FROM project WHERE id = ${id}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), fromRow)),
        Effect.mapError(storeError("ProjectStore.get"))
      ),
    list: (page) =>
      paginate<Row>(reads, {
        table: "project",
        where: sql`true`,
        tieBreaker: "seq",
        select: sql`SELECT id, name, created_at FROM page`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(fromRow), total })),
        Effect.mapError(storeError("ProjectStore.list"))
      ),
    remove: (id) =>
      remove(id).pipe(
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeed("has-products" as const)),
        Effect.mapError(storeError("ProjectStore.remove"))
      )
  })
}
