/**
 * Thing models on SQLite.
 */
import { keptVersions, type ModelVersion, type ProductKey, type ThingModel, ThingModelStore } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { Sqlite } from "./Sqlite.ts"

/** Can be replaced alone. Its rows refer to products in the same database. */
export const layer: Layer.Layer<ThingModelStore, never, Sqlite> = Layer.effect(
  ThingModelStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

interface Row {
  readonly version: number
  readonly model: string
  readonly created_at: number
}

const fromRow = ({ created_at, model, version }: Row): ModelVersion => ({
  version,
  model: JSON.parse(model) as ThingModel,
  createdAt: created_at
})

const make = (sql: Sqlite["Service"]) => {
  const newest = (productKey: ProductKey, limit: number): ReadonlyArray<ModelVersion> =>
    sql.all<Row>("SELECT * FROM thing_model WHERE product_key = ? ORDER BY version DESC LIMIT ?", [productKey, limit])
      .map(fromRow)

  /** 0: it has none. */
  const latestNumber = (productKey: ProductKey): number =>
    sql.get<{ readonly version: number | null }>(
      "SELECT max(version) AS version FROM thing_model WHERE product_key = ?",
      [productKey]
    )!.version ?? 0

  return ThingModelStore.of({
    latest: (productKey) => sql.read("ThingModelStore.latest", () => Option.fromUndefinedOr(newest(productKey, 1)[0])),
    versionsOf: (productKeys) =>
      sql.read("ThingModelStore.versionsOf", () =>
        new Map(
          productKeys.map((productKey): [ProductKey, number] => [productKey, latestNumber(productKey)])
            .filter(([, version]) => version > 0)
        )),
    history: (productKey) => sql.read("ThingModelStore.history", () => newest(productKey, keptVersions)),
    insert: (productKey, { createdAt, model, version }) =>
      sql.write("ThingModelStore.insert", () => {
        if (version !== latestNumber(productKey) + 1) return false
        sql.run("DELETE FROM thing_model WHERE product_key = ? AND version <= ?", [productKey, version - keptVersions])
        return sql.run(
          `INSERT INTO thing_model (product_key, version, model, created_at)
            SELECT product_key, ?, ?, ? FROM product WHERE product_key = ?`,
          [version, JSON.stringify(model), createdAt, productKey]
        ) > 0
      })
  })
}
