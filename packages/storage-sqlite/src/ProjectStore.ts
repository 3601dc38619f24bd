/**
 * Projects on SQLite.
 */
import { type Project, type ProjectId, ProjectStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { pageOf } from "./Paging.ts"
import { Sqlite } from "./Sqlite.ts"

/** Part of the group that is replaced together: products refer to projects. */
export const layer: Layer.Layer<ProjectStore, never, Sqlite> = Layer.effect(
  ProjectStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

interface Row {
  readonly id: string
  readonly name: string
  readonly created_at: number
}

const fromRow = (row: Row): Project => ({ id: row.id as ProjectId, name: row.name, createdAt: row.created_at })

const make = (sql: Sqlite["Service"]) =>
  ProjectStore.of({
    insert: ({ createdAt, id, name }) =>
      sql.write("ProjectStore.insert", () =>
        sql.run("INSERT INTO project (id, name, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [
          id,
          name,
          createdAt
        ]) > 0),
    get: (id) =>
      sql.read("ProjectStore.get", () =>
        Option.map(Option.fromUndefinedOr(sql.get<Row>("SELECT * FROM project WHERE id = ?", [id])), fromRow)),
    list: (page) =>
      sql.read("ProjectStore.list", () => {
        const { items, total } = pageOf<Row>(sql, {
          table: "project",
          where: "true",
          values: [],
          order: "created_at DESC, seq DESC",
          page
        })
        return { items: items.map(fromRow), total }
      }),
    remove: (id) =>
      sql.write("ProjectStore.remove", () => {
        if (sql.get("SELECT 1 FROM product WHERE project_id = ? LIMIT 1", [id]) !== undefined) {
          return "has-products"
        }
        return sql.run("DELETE FROM project WHERE id = ?", [id]) > 0 ? "removed" : "not-found"
      })
  })
