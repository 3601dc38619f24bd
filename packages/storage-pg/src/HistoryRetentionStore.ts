/**
 * The days that products keep history, on PostgreSQL.
 */
import { HistoryRetentionStore } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { isForeignKeyViolation, storeError } from "./PgErrors.ts"

/** Replaced together with `HistoryStore`, which goes by it. Its rows refer to products in the same database. */
export const layer: Layer.Layer<HistoryRetentionStore, never, PgClient.PgClient> = Layer.effect(
  HistoryRetentionStore,
  Effect.map(PgClient.PgClient, (sql) => make(sql))
)

const make = (sql: PgClient.PgClient) =>
  HistoryRetentionStore.of({
    get: (productKey) =>
      sql<{ readonly days: number }>`SELECT days FROM history_retention WHERE product_key = ${productKey}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), ({ days }) => days)),
        Effect.mapError(storeError("HistoryRetentionStore.get"))
      ),
    put: (productKey, days) =>
      (days === null
        ? sql`
          WITH removed AS (DELETE FROM history_retention WHERE product_key = ${productKey})
          SELECT 1 FROM product WHERE product_key = ${productKey}`
        : sql`
          INSERT INTO history_retention (product_key, days) VALUES (${productKey}, ${days}::int)
          ON CONFLICT (product_key) DO UPDATE SET days = excluded.days RETURNING 1`).pipe(
          Effect.map((rows) => rows.length > 0),
          Effect.catchIf(isForeignKeyViolation, () => Effect.succeed(false)),
          Effect.mapError(storeError("HistoryRetentionStore.put"))
        )
  })
