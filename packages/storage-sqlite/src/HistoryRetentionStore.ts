/**
 * The days that products keep history, on SQLite.
 */
import { HistoryRetentionStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { Sqlite } from "./Sqlite.ts"

/** Replaced together with `HistoryStore`, which goes by it. Its rows refer to products in the same database. */
export const layer: Layer.Layer<HistoryRetentionStore, never, Sqlite> = Layer.effect(
  HistoryRetentionStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

const make = (sql: Sqlite["Service"]) =>
  HistoryRetentionStore.of({
    get: (productKey) =>
      sql.read("HistoryRetentionStore.get", () => {
        const row = sql.get<{ readonly days: number }>("SELECT days FROM history_retention WHERE product_key = ?", [
          productKey
        ])
        return Option.map(Option.fromUndefinedOr(row), ({ days }) => days)
      }),
    put: (productKey, days) =>
      sql.write("HistoryRetentionStore.put", () => {
        if (sql.get("SELECT 1 FROM product WHERE product_key = ?", [productKey]) === undefined) return false
        if (days === null) sql.run("DELETE FROM history_retention WHERE product_key = ?", [productKey])
        else sql.run("INSERT OR REPLACE INTO history_retention (product_key, days) VALUES (?, ?)", [productKey, days])
        return true
      })
  })
