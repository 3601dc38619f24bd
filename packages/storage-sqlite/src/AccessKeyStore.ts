/**
 * Access keys on SQLite.
 */
import { type AccessKey, AccessKeyStore, type ProjectId, type Role } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { pageOf } from "./Paging.ts"
import { Sqlite } from "./Sqlite.ts"

/** Can be replaced alone. Its rows refer to projects in the same file. */
export const layer: Layer.Layer<AccessKeyStore, never, Sqlite> = Layer.effect(
  AccessKeyStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

interface Row {
  readonly id: string
  readonly project_id: string
  readonly name: string
  readonly role: string
  readonly hash: string
  readonly created_at: number
  readonly expires_at: number | null
  readonly products: string | null
  readonly actions: string | null
  readonly addresses: string | null
  readonly created_by: string | null
  readonly last_used_at: number | null
}

const fromRow = (row: Row): AccessKey => ({
  id: row.id,
  projectId: row.project_id as ProjectId,
  name: row.name,
  role: row.role as Role,
  hash: row.hash,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  scopes: {
    ...row.products === null ? {} : { products: JSON.parse(row.products) },
    ...row.actions === null ? {} : { actions: JSON.parse(row.actions) }
  },
  addresses: row.addresses === null ? null : JSON.parse(row.addresses),
  createdBy: row.created_by,
  lastUsedAt: row.last_used_at
})

const json = (list: ReadonlyArray<string> | null | undefined) => list == null ? null : JSON.stringify(list)

const make = (sql: Sqlite["Service"]) => {
  const insert = (key: AccessKey) =>
    sql.run(
      `INSERT INTO access_key (id, project_id, name, role, hash, created_at, expires_at, products, actions, addresses,
        created_by, last_used_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      [
        key.id,
        key.projectId,
        key.name,
        key.role,
        key.hash,
        key.createdAt,
        key.expiresAt,
        json(key.scopes.products),
        json(key.scopes.actions),
        json(key.addresses),
        key.createdBy,
        key.lastUsedAt
      ]
    )

  /** Removes the keys that come from `id`, but for owners, and returns their ids. */
  const removeDescendants = (id: string): ReadonlyArray<string> =>
    sql.all<{ readonly id: string }>(
      `WITH RECURSIVE gone (id) AS (
          SELECT id FROM access_key WHERE created_by = ? AND role <> 'owner'
          UNION
          SELECT access_key.id FROM access_key JOIN gone ON access_key.created_by = gone.id WHERE role <> 'owner'
        )
        DELETE FROM access_key WHERE id IN (SELECT id FROM gone) AND id <> ? RETURNING id`,
      [id, id]
    ).map((row) => row.id)

  return AccessKeyStore.of({
    insert: (key) =>
      sql.write("AccessKeyStore.insert", () => {
        if (sql.get("SELECT 1 FROM project WHERE id = ?", [key.projectId]) === undefined) return "no-project"
        const { createdBy } = key
        if (createdBy !== null && sql.get("SELECT 1 FROM access_key WHERE id = ?", [createdBy]) === undefined) {
          return "no-creator"
        }
        insert(key)
        return "inserted"
      }),
    replaceOwner: (key) =>
      sql.write("AccessKeyStore.replaceOwner", () => {
        const isOwner = sql.get("SELECT 1 FROM access_key WHERE id = ? AND hash = ? AND role = 'owner'", [
          key.id,
          key.hash
        ]) !== undefined
        sql.run("DELETE FROM access_key WHERE (role = 'owner' OR id = ?) AND NOT (? AND id = ?)", [
          key.id,
          Number(isOwner),
          key.id
        ])
        if (!isOwner) insert(key)
      }),
    find: (id) =>
      sql.read(
        "AccessKeyStore.find",
        () => Option.map(Option.fromUndefinedOr(sql.get<Row>("SELECT * FROM access_key WHERE id = ?", [id])), fromRow)
      ),
    list: (projectId, page) =>
      sql.read("AccessKeyStore.list", () => {
        const { items, total } = pageOf<Row>(sql, {
          table: "access_key",
          where: "project_id = ?",
          values: [projectId],
          order: "created_at DESC, seq DESC",
          page
        })
        return { items: items.map(fromRow), total }
      }),
    remove: (projectId, id, options) =>
      sql.write("AccessKeyStore.remove", () => {
        const gone = sql.get<{ readonly created_by: string | null }>(
          "DELETE FROM access_key WHERE id = ? AND project_id = ? AND role <> 'owner' RETURNING created_by",
          [id, projectId]
        )
        if (gone === undefined) return []
        if (options?.cascade === true) return [id, ...removeDescendants(id)]
        sql.run("UPDATE access_key SET created_by = ? WHERE created_by = ?", [gone.created_by, id])
        return [id]
      }),
    removeDescendants: (id) => sql.write("AccessKeyStore.removeDescendants", () => removeDescendants(id)),
    markUsed: (uses) =>
      sql.write("AccessKeyStore.markUsed", () => {
        for (const { at, id } of uses) {
          sql.run(
            "UPDATE access_key SET last_used_at = ? WHERE id = ? AND (last_used_at IS NULL OR last_used_at < ?)",
            [at, id, at]
          )
        }
      })
  })
}
