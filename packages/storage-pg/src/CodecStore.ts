/**
 * The codecs of products on PostgreSQL.
 */
import { type CodecDescription, CodecStore, type ProductKey, type StoredCodec } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { isForeignKeyViolation, storeError } from "./PgErrors.ts"
import { instant, texts } from "./PgParameters.ts"

/** Can be replaced alone. Its rows refer to products in the same database. */
export const layer: Layer.Layer<CodecStore, never, PgClient.PgClient> = Layer.effect(
  CodecStore,
  Effect.map(PgClient.PgClient, (sql) => make(sql))
)

interface Row {
  readonly version: bigint
  readonly description: CodecDescription | null
  readonly updated_at: Date
}

const fromRow = ({ description, updated_at, version }: Row): StoredCodec => ({
  version: Number(version),
  description,
  updatedAt: updated_at.getTime()
})

const make = (sql: PgClient.PgClient) =>
  CodecStore.of({
    get: (productKey) =>
      sql<Row>`SELECT version, description, updated_at FROM product_codec WHERE product_key = ${productKey}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), fromRow)),
        Effect.mapError(storeError("CodecStore.get"))
      ),
    versionsOf: (productKeys) =>
      sql<{ readonly product_key: string; readonly version: bigint }>`
        SELECT product_key, version FROM product_codec WHERE product_key = ANY(${texts(productKeys)})`.pipe(
        Effect.map((rows) =>
          new Map(rows.map(({ product_key, version }) => [product_key as ProductKey, Number(version)]))
        ),
        Effect.mapError(storeError("CodecStore.versionsOf"))
      ),
    put: (productKey, description, at) =>
      sql<Row>`
        INSERT INTO product_codec (product_key, version, description, updated_at)
        VALUES (${productKey}, 1, ${description === null ? null : JSON.stringify(description)}::json, ${instant(at)})
        ON CONFLICT (product_key) DO UPDATE SET version = product_codec.version + 1,
          description = excluded.description, updated_at = excluded.updated_at
        RETURNING version, description, updated_at`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), fromRow)),
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeedNone),
        Effect.mapError(storeError("CodecStore.put"))
      )
  })
