/**
 * The codecs of products on SQLite.
 */
import { type CodecDescription, CodecStore, type ProductKey, type StoredCodec } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { Sqlite } from "./Sqlite.ts"

/** Can be replaced alone. Its rows refer to products in the same database. */
export const layer: Layer.Layer<CodecStore, never, Sqlite> = Layer.effect(
  CodecStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

interface Row {
  readonly version: number
  readonly description: string | null
  readonly updated_at: number
}

const fromRow = ({ description, updated_at, version }: Row): StoredCodec => ({
  version,
  description: description === null ? null : JSON.parse(description) as CodecDescription,
  updatedAt: updated_at
})

const make = (sql: Sqlite["Service"]) => {
  const find = (productKey: ProductKey) =>
    Option.map(
      Option.fromUndefinedOr(sql.get<Row>("SELECT * FROM product_codec WHERE product_key = ?", [productKey])),
      fromRow
    )

  return CodecStore.of({
    get: (productKey) => sql.read("CodecStore.get", () => find(productKey)),
    versionsOf: (productKeys) =>
      sql.read(
        "CodecStore.versionsOf",
        () =>
          new Map(productKeys.flatMap((productKey): ReadonlyArray<[ProductKey, number]> =>
            Option.match(find(productKey), {
              onNone: () => [],
              onSome: ({ version }) => [[productKey, version]]
            })
          ))
      ),
    put: (productKey, description, at) =>
      sql.write("CodecStore.put", () => {
        const row = sql.get<Row>(
          `INSERT INTO product_codec AS known (product_key, version, description, updated_at)
            SELECT product_key, 1, ?, ? FROM product WHERE product_key = ?
            ON CONFLICT (product_key) DO UPDATE SET version = known.version + 1,
              description = excluded.description, updated_at = excluded.updated_at
            RETURNING *`,
          [description === null ? null : JSON.stringify(description), at, productKey]
        )
        return Option.map(Option.fromUndefinedOr(row), fromRow)
      })
  })
}
