/**
 * Products on SQLite.
 */
import { type Product, type ProductKey, ProductStore, type ProjectId } from "@device-cloud/core"
import { Effect, Layer, Option } from "effect"
import { pageOf } from "./Paging.ts"
import { productFromRow, type ProductRow } from "./Rows.ts"
import { Secrets } from "./Secrets.ts"
import { Sqlite, type Value } from "./Sqlite.ts"

/** Part of the group that is replaced together: products refer to projects, devices to products. */
export const layer: Layer.Layer<ProductStore, never, Sqlite | Secrets> = Layer.effect(
  ProductStore,
  Effect.gen(function*() {
    return make(yield* Sqlite, yield* Secrets)
  })
)

const make = (sql: Sqlite["Service"], secrets: Secrets["Service"]) => {
  const one = (row: ProductRow | undefined): Option.Option<Product> =>
    Option.map(Option.fromUndefinedOr(row), (found) => productFromRow(secrets, found))

  const find = (projectId: ProjectId, productKey: ProductKey) =>
    one(sql.get("SELECT * FROM product WHERE product_key = ? AND project_id = ?", [productKey, projectId]))

  return ProductStore.of({
    insert: (product) =>
      sql.write("ProductStore.insert", () => {
        const columns: Readonly<Record<string, Value>> = {
          project_id: product.projectId,
          product_key: product.productKey,
          product_secret: secrets.seal(product.productSecret, ["product", product.productKey, "product_secret"]),
          name: product.name,
          description: product.description,
          photo_url: product.photoUrl,
          device_type: product.deviceType,
          node_type: product.nodeType,
          network_type: product.networkType,
          protocol_type: product.protocolType,
          validate_type: product.validateType,
          data_format: product.dataFormat,
          auth_type: product.authType,
          uplink_signature: product.uplinkSignature,
          data_source: product.dataSource,
          platform: product.platform,
          platform_name: product.platformName,
          dynamic_register: product.dynamicRegister,
          status: product.status,
          created_at: product.createdAt,
          updated_at: product.updatedAt
        }
        const names = Object.keys(columns)
        const row = sql.get<ProductRow>(
          `INSERT INTO product (${names.join(", ")}) SELECT ${names.map(() => "?").join(", ")}
            FROM project WHERE id = ? RETURNING *`,
          [...Object.values(columns), product.projectId]
        )
        return row === undefined ? "no-project" : productFromRow(secrets, row)
      }),
    get: (projectId, productKey) => sql.read("ProductStore.get", () => find(projectId, productKey)),
    find: (productKey) =>
      sql.read("ProductStore.find", () => one(sql.get("SELECT * FROM product WHERE product_key = ?", [productKey]))),
    list: (projectId, page) =>
      sql.read("ProductStore.list", () => {
        const { items, total } = pageOf<ProductRow>(sql, {
          table: "product",
          where: "project_id = ?",
          values: [projectId],
          order: "created_at DESC, id DESC",
          page
        })
        return { items: items.map((row) => productFromRow(secrets, row)), total }
      }),
    update: (projectId, productKey, change) =>
      sql.write("ProductStore.update", () =>
        sql.run(
          `UPDATE product SET name = coalesce(?, name), dynamic_register = coalesce(?, dynamic_register),
            photo_url = coalesce(?, photo_url), description = coalesce(?, description),
            uplink_signature = coalesce(?, uplink_signature), status = coalesce(?, status), updated_at = ?
          WHERE product_key = ? AND project_id = ?`,
          [
            change.name ?? null,
            change.dynamicRegister ?? null,
            change.photoUrl ?? null,
            change.description ?? null,
            change.uplinkSignature ?? null,
            change.status ?? null,
            change.updatedAt,
            productKey,
            projectId
          ]
        ) > 0),
    rotateSecret: (projectId, productKey, { at, previousUntil, secret }) =>
      sql.write("ProductStore.rotateSecret", () =>
        Option.flatMap(find(projectId, productKey), ({ productSecret }) => {
          const seal = (text: string, column: string) => secrets.seal(text, ["product", productKey, column])
          return one(sql.get(
            `UPDATE product SET product_secret = ?, previous_secret = ?, previous_secret_until = ?, updated_at = ?
              WHERE product_key = ? RETURNING *`,
            [
              seal(secret, "product_secret"),
              previousUntil === null ? null : seal(productSecret, "previous_secret"),
              previousUntil,
              at,
              productKey
            ]
          ))
        })),
    remove: (projectId, productKey) =>
      sql.write("ProductStore.remove", () => {
        if (Option.isNone(find(projectId, productKey))) return "not-found"
        if (sql.get("SELECT 1 FROM device WHERE product_key = ? LIMIT 1", [productKey]) !== undefined) {
          return "has-devices"
        }
        sql.run("DELETE FROM product WHERE product_key = ?", [productKey])
        return "removed"
      })
  })
}
