/**
 * Products on PostgreSQL.
 */
import {
  type KeyRing,
  type KeyRingError,
  type ProductKey,
  ProductStore,
  type ProjectId,
  type Rotation
} from "@device-cloud/core"
import { type PgClient, PgTypes } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import { productFromRow, type ProductRow } from "./ProductRow.ts"
import { clients } from "./LongReads.ts"
import { paginate } from "./Pagination.ts"
import { type DatabaseError, isForeignKeyViolation, storeError } from "./PgErrors.ts"
import { instant } from "./PgParameters.ts"
import { SealedSecrets } from "./SealedSecrets.ts"
import { placeOf } from "./SecretColumns.ts"

/** Part of the group that is replaced together: products refer to projects, devices to products. */
export const layer: Layer.Layer<ProductStore, DatabaseError | KeyRingError, PgClient.PgClient | KeyRing> = Layer.effect(
  ProductStore,
  Effect.suspend(() => make)
).pipe(Layer.provide(SealedSecrets.layer))

const make = Effect.gen(function*() {
  const { reads, sql } = yield* clients
  const secrets = yield* SealedSecrets

  const fromRow = (row: ProductRow) => productFromRow(secrets, row)

  const first = (rows: ReadonlyArray<ProductRow>) =>
    Effect.map(secrets.ready(rows), ([row]) => Option.map(Option.fromUndefinedOr(row), fromRow))

  const rotateSecret = Effect.fnUntraced(
    function*(projectId: ProjectId, productKey: ProductKey, { at, previousUntil, secret }: Rotation) {
      const rows = yield* sql<ProductRow>`SELECT * FROM product
        WHERE product_key = ${productKey} AND project_id = ${projectId} FOR NO KEY UPDATE`
      const [row] = yield* secrets.readyOrFail(rows)
      if (row === undefined) return Option.none()
      const before = fromRow(row)
      const { key, number } = secrets.current()
      const seal = (text: string, column: string) => key.seal(text, placeOf("product", productKey, column))
      const previous = previousUntil === null ? null : seal(before.productSecret, "previous_secret")
      const changed = yield* sql<ProductRow>`UPDATE product SET
          product_secret = ${seal(secret, "product_secret")},
          previous_secret = ${PgTypes.text(previous)},
          previous_secret_until = ${instant(previousUntil)},
          sealed_with = ${number}::int,
          updated_at = ${instant(at)}
        WHERE product_key = ${productKey} RETURNING *`
      return yield* first(changed)
    },
    sql.withTransaction
  )

  return ProductStore.of({
    insert: (product) => {
      const { key, number } = secrets.current()
      return sql<ProductRow>`INSERT INTO product ${
        sql.insert({
          project_id: product.projectId,
          product_key: product.productKey,
          product_secret: key.seal(product.productSecret, placeOf("product", product.productKey, "product_secret")),
          sealed_with: number,
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
          created_at: instant(product.createdAt),
          updated_at: instant(product.updatedAt)
        })
      } RETURNING *`.pipe(
        Effect.map(([row]) => fromRow(row!)),
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeed("no-project" as const)),
        Effect.mapError(storeError("ProductStore.insert"))
      )
    },
    get: (projectId, productKey) =>
      sql<ProductRow>`SELECT * FROM product WHERE product_key = ${productKey} AND project_id = ${projectId}`.pipe(
        Effect.flatMap(first),
        Effect.mapError(storeError("ProductStore.get"))
      ),
    find: (productKey) =>
      sql<ProductRow>`SELECT * FROM product WHERE product_key = ${productKey}`.pipe(
        Effect.flatMap(first),
        Effect.mapError(storeError("ProductStore.find"))
      ),
    list: (projectId, page) =>
      paginate<ProductRow>(reads, {
        table: "product",
        where: sql`project_id = ${projectId}`,
        tieBreaker: "id",
        select: sql`SELECT * FROM page`,
        page
      }).pipe(
        Effect.flatMap(({ items, total }) =>
          Effect.map(secrets.ready(items), (rows) => ({ items: rows.map(fromRow), total }))
        ),
        Effect.mapError(storeError("ProductStore.list"))
      ),
    update: (projectId, productKey, change) =>
      sql`UPDATE product SET
            name = coalesce(${change.name ?? null}::text, name),
            dynamic_register = coalesce(${change.dynamicRegister ?? null}::boolean, dynamic_register),
            photo_url = coalesce(${change.photoUrl ?? null}::text, photo_url),
            description = coalesce(${change.description ?? null}::text, description),
            uplink_signature = coalesce(${change.uplinkSignature ?? null}::text, uplink_signature),
            status = coalesce(${change.status ?? null}::text, status),
            updated_at = ${instant(change.updatedAt)}
          WHERE product_key = ${productKey} AND project_id = ${projectId} RETURNING id`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.mapError(storeError("ProductStore.update"))
      ),
    rotateSecret: (projectId, productKey, rotation) =>
      Effect.mapError(rotateSecret(projectId, productKey, rotation), storeError("ProductStore.rotateSecret")),
    remove: (projectId, productKey) =>
      sql`DELETE FROM product WHERE product_key = ${productKey} AND project_id = ${projectId} RETURNING id`.pipe(
        Effect.map((rows) => rows.length > 0 ? "removed" as const : "not-found" as const),
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeed("has-devices" as const)),
        Effect.mapError(storeError("ProductStore.remove"))
      )
  })
})
