/**
 * Thing models on PostgreSQL.
 */
import { keptVersions, type ModelVersion, type ProductKey, type ThingModel, ThingModelStore } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { isForeignKeyViolation, storeError } from "./PgErrors.ts"
import { instant, texts } from "./PgParameters.ts"

/** Can be replaced alone. Its rows refer to products in the same database. */
export const layer: Layer.Layer<ThingModelStore, never, PgClient.PgClient> = Layer.effect(
  ThingModelStore,
  Effect.map(PgClient.PgClient, (sql) => make(sql))
)

interface Row {
  readonly version: bigint
  readonly model: ThingModel
  readonly created_at: Date
}

const fromRow = ({ created_at, model, version }: Row): ModelVersion => ({
  version: Number(version),
  model,
  createdAt: created_at.getTime()
})

const make = (sql: PgClient.PgClient) => {
  const newest = (productKey: ProductKey, limit: number) =>
    Effect.map(
      sql<Row>`SELECT version, model, created_at FROM thing_model WHERE product_key = ${productKey}
        ORDER BY version DESC LIMIT ${limit}`,
      (rows) => rows.map(fromRow)
    )

  return ThingModelStore.of({
    latest: (productKey) =>
      newest(productKey, 1).pipe(
        Effect.map(([version]) => Option.fromUndefinedOr(version)),
        Effect.mapError(storeError("ThingModelStore.latest"))
      ),
    versionsOf: (productKeys) =>
      sql<{ readonly product_key: string; readonly version: bigint }>`
        SELECT product_key, max(version) AS version FROM thing_model
        WHERE product_key = ANY(${texts(productKeys)}) GROUP BY product_key`.pipe(
        Effect.map((rows) =>
          new Map(rows.map(({ product_key, version }) => [product_key as ProductKey, Number(version)]))
        ),
        Effect.mapError(storeError("ThingModelStore.versionsOf"))
      ),
    history: (productKey) => Effect.mapError(newest(productKey, keptVersions), storeError("ThingModelStore.history")),
    insert: (productKey, { createdAt, model, version }) =>
      sql<{ readonly version: bigint }>`
        WITH old AS (
          DELETE FROM thing_model WHERE product_key = ${productKey} AND version <= ${version - keptVersions}
        )
        INSERT INTO thing_model (product_key, version, model, created_at)
        SELECT ${productKey}, ${version}, ${JSON.stringify(model)}::json, ${instant(createdAt)}
        WHERE ${version} = 1 + coalesce(
          (SELECT max(version) FROM thing_model WHERE product_key = ${productKey}), 0
        )
        ON CONFLICT DO NOTHING RETURNING version`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeed(false)),
        Effect.mapError(storeError("ThingModelStore.insert"))
      )
  })
}
