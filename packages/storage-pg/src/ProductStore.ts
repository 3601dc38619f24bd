/**
 * Products on PostgreSQL.
 */
import { ProductStore } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { productFromRow, type ProductRow } from "./ProductRow.ts"
import { paginate } from "./Pagination.ts"
import { isForeignKeyViolation, storeError } from "./PgErrors.ts"
import { instant } from "./PgParameters.ts"

/** Part of the group that is replaced together: products refer to projects, devices to products. */
export const layer: Layer.Layer<ProductStore, never, PgClient.PgClient> = Layer.effect(
  ProductStore,
  Effect.map(PgClient.PgClient, (sql) => make(sql))
)

const make = (sql: PgClient.PgClient) =>
  ProductStore.of({
    insert: (product) =>
      sql<ProductRow>`INSERT INTO product ${
        sql.insert({
          project_id: product.projectId,
          product_key: product.productKey,
          product_secret: product.productSecret,
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
          data_source: product.dataSource,
          platform: product.platform,
          platform_name: product.platformName,
          dynamic_register: product.dynamicRegister,
          status: product.status,
          created_at: instant(product.createdAt),
          updated_at: instant(product.updatedAt)
        })
      } RETURNING *`.pipe(
        Effect.map(([row]) => productFromRow(row!)),
        Effect.mapError(storeError("ProductStore.insert"))
      ),
    get: (projectId, productKey) =>
      sql<ProductRow>`SELECT * FROM product WHERE product_key = ${productKey} AND project_id = ${projectId}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), productFromRow)),
        Effect.mapError(storeError("ProductStore.get"))
      ),
    find: (productKey) =>
      sql<ProductRow>`SELECT * FROM product WHERE product_key = ${productKey}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), productFromRow)),
        Effect.mapError(storeError("ProductStore.find"))
      ),
    list: (projectId, page) =>
      paginate<ProductRow>(sql, {
        table: "product",
        where: sql`project_id = ${projectId}`,
        tieBreaker: "id",
        select: sql`SELECT * FROM page`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(productFromRow), total })),
        Effect.mapError(storeError("ProductStore.list"))
      ),
    update: (projectId, productKey, change) =>
      sql`UPDATE product SET
            name = coalesce(${change.name ?? null}::text, name),
            dynamic_register = coalesce(${change.dynamicRegister ?? null}::boolean, dynamic_register),
            photo_url = coalesce(${change.photoUrl ?? null}::text, photo_url),
            description = coalesce(${change.description ?? null}::text, description),
            status = coalesce(${change.status ?? null}::text, status),
            updated_at = ${instant(change.updatedAt)}
          WHERE product_key = ${productKey} AND project_id = ${projectId} RETURNING id`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.mapError(storeError("ProductStore.update"))
      ),
    remove: (projectId, productKey) =>
      sql`DELETE FROM product WHERE product_key = ${productKey} AND project_id = ${projectId} RETURNING id`.pipe(
        Effect.map((rows) => rows.length > 0 ? "removed" as const : "not-found" as const),
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeed("has-devices" as const)),
        Effect.mapError(storeError("ProductStore.remove"))
      )
  })
