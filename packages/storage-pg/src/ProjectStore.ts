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

const make = ({ reads, sql }: Clients) =>
  ProjectStore.of({
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
      sql`WITH executions AS (
          DELETE FROM scene_execution WHERE scene_id IN (SELECT scene_id FROM scene WHERE project_id = ${id})
        ), requests AS (
          DELETE FROM request WHERE project_id = ${id}
        )
        DELETE FROM project WHERE id = ${id} RETURNING id`.pipe(
        Effect.map((rows) => rows.length > 0 ? "removed" as const : "not-found" as const),
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeed("has-products" as const)),
        Effect.mapError(storeError("ProjectStore.remove"))
      )
  })
