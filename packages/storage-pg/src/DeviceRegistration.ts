/**
 * The part of `DeviceStore` in which devices register themselves.
 */
import type { DeviceName, DeviceStore, NewDevice, ProductKey } from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { deviceDetailColumns, deviceDetailFromRow, type DeviceDetailRow } from "./DeviceRow.ts"
import { isForeignKeyViolation, isUniqueViolation, storeError } from "./PgErrors.ts"
import { instant } from "./PgParameters.ts"
import type { SealedSecrets } from "./SealedSecrets.ts"
import { placeOf } from "./SecretColumns.ts"

export const make = (
  sql: PgClient.PgClient,
  secrets: SealedSecrets["Service"]
): Pick<DeviceStore["Service"], "claimByMac" | "claimByName"> => {
  const columns = sql.literal(deviceDetailColumns)
  const detail = (row: DeviceDetailRow) =>
    Effect.map(secrets.readyOrFail([row]), ([ready]) => deviceDetailFromRow(secrets, ready!))
  const unlessActive = (row: DeviceDetailRow) =>
    row.activated_at === null ? detail(row) : Effect.succeed("active" as const)

  /** One statement: between two, another caller could remove the device that the first one has found. */
  const insertOrMark = (productKey: ProductKey, draft: NewDevice) => {
    const { key, number } = secrets.current()
    const secret = key.seal(draft.deviceSecret, placeOf("device", draft.deviceId, "device_secret"))
    return sql<DeviceDetailRow>`
      WITH claimed AS (
        INSERT INTO device (project_id, product_key, device_id, device_name, device_secret, sealed_with, nickname,
          batch_id, cloud_gateway, mac, created_at, updated_at)
        SELECT project_id, product_key, ${draft.deviceId}, ${draft.deviceName}, ${secret}, ${number}::int,
          ${draft.nickname}, ${draft.batchId}::bigint, NULL, '', ${instant(draft.createdAt)},
          ${instant(draft.createdAt)}
        FROM product WHERE product_key = ${productKey}
        ON CONFLICT (product_key, device_name) DO UPDATE SET mac = coalesce(device.mac, '')
        RETURNING *
      )
      SELECT ${columns} FROM claimed AS device JOIN product USING (product_key)`
  }

  const mark = (productKey: ProductKey, deviceName: DeviceName) =>
    sql<DeviceDetailRow>`
      UPDATE device SET mac = coalesce(mac, '') FROM product
      WHERE device.product_key = ${productKey} AND device.device_name = ${deviceName}
        AND product.product_key = device.product_key
      RETURNING ${columns}`

  return {
    claimByMac: (productKey, mac) => {
      const attempt = Effect.gen(function*() {
        const known = yield* sql<DeviceDetailRow>`SELECT ${columns} FROM device JOIN product USING (product_key)
          WHERE device.product_key = ${productKey} AND device.mac = ${mac} AND device.mac <> ''`
        if (known[0] !== undefined) return yield* unlessActive(known[0])
        const [claimed] = yield* sql<DeviceDetailRow>`
          WITH free AS (
            SELECT device_id FROM device
            WHERE product_key = ${productKey} AND mac IS NULL AND activated_at IS NULL AND enabled
            ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
          )
          UPDATE device SET mac = ${mac} FROM free, product
          WHERE device.device_id = free.device_id AND product.product_key = device.product_key
          RETURNING ${columns}`
        if (claimed !== undefined) return yield* detail(claimed)
        // Another caller locks what is left, or gives it to this device: this one waits for the lock.
        const [left] = yield* sql`SELECT FROM device
          WHERE product_key = ${productKey} AND activated_at IS NULL AND (mac = ${mac} OR (mac IS NULL AND enabled))
          LIMIT 1 FOR UPDATE`
        return left === undefined ? "none" : "wait"
      }).pipe(
        // The same device asks twice at the same moment, and has been given a device.
        Effect.catchIf(isUniqueViolation, () => Effect.succeed("wait" as const))
      )
      return attempt.pipe(
        Effect.repeat({ while: (claimed) => claimed === "wait" }),
        Effect.mapError(storeError("DeviceStore.claimByMac"))
      )
    },
    claimByName: (productKey, deviceName, draft) =>
      Effect.gen(function*() {
        const [known] = yield* draft === undefined ? mark(productKey, deviceName) : insertOrMark(productKey, draft)
        return known === undefined ? "none" : yield* unlessActive(known)
      }).pipe(
        // The product is removed at the same moment.
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeed("none" as const)),
        Effect.mapError(storeError("DeviceStore.claimByName"))
      )
  }
}
