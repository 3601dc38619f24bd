/**
 * Browser sessions on SQLite.
 */
import { BrowserSessionStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { Sqlite } from "./Sqlite.ts"

/** Goes with `AccessKeyStore`: its rows refer to access keys in the same file. */
export const layer: Layer.Layer<BrowserSessionStore, never, Sqlite> = Layer.effect(
  BrowserSessionStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

interface Row {
  readonly hash: string
  readonly access_key_id: string
  readonly created_at: number
  readonly expires_at: number
}

const make = (sql: Sqlite["Service"]) =>
  BrowserSessionStore.of({
    insert: ({ accessKeyId, createdAt, expiresAt, hash }, limit) =>
      sql.write("BrowserSessionStore.insert", () => {
        if (sql.get("SELECT 1 FROM access_key WHERE id = ?", [accessKeyId]) === undefined) return false
        sql.run("INSERT INTO browser_session (hash, access_key_id, created_at, expires_at) VALUES (?, ?, ?, ?)", [
          hash,
          accessKeyId,
          createdAt,
          expiresAt
        ])
        sql.run(
          `DELETE FROM browser_session WHERE seq IN (
            SELECT seq FROM browser_session WHERE access_key_id = ? ORDER BY created_at DESC, seq DESC LIMIT -1 OFFSET ?
          )`,
          [accessKeyId, limit]
        )
        return true
      }),
    find: (hash) =>
      sql.read("BrowserSessionStore.find", () =>
        Option.map(
          Option.fromUndefinedOr(sql.get<Row>("SELECT * FROM browser_session WHERE hash = ?", [hash])),
          (row) => ({
            hash: row.hash,
            accessKeyId: row.access_key_id,
            createdAt: row.created_at,
            expiresAt: row.expires_at
          })
        )),
    remove: (hash) =>
      sql.write(
        "BrowserSessionStore.remove",
        () => sql.run("DELETE FROM browser_session WHERE hash = ?", [hash]) > 0
      ),
    prune: ({ before, limit }) =>
      sql.write("BrowserSessionStore.prune", () =>
        sql.run(
          `DELETE FROM browser_session WHERE seq IN (
            SELECT seq FROM browser_session WHERE expires_at < ? LIMIT ?
          )`,
          [before, limit]
        ))
  })
