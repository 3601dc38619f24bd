/**
 * The part of `DeviceStore` about batches: devices that are created together.
 */
import {
  type Batch,
  type DeviceId,
  type DeviceName,
  type DeviceStore,
  type ProductKey,
  type ProjectId
} from "@device-cloud/core"
import { Option } from "effect"
import { hasProduct, insertDevice, takenNames, unlessTaken } from "./DeviceInsertion.ts"
import { pageOf } from "./Paging.ts"
import { type DeviceRow, deviceSecretOf, identityColumns, identityFromRow, type IdentityRow } from "./Rows.ts"
import type { Secrets } from "./Secrets.ts"
import type { Sqlite } from "./Sqlite.ts"

interface BatchRow {
  readonly batch_id: number
  readonly product_key: string
  readonly size: number
  readonly description: string
  readonly created_at: number
}

const batchFromRow = (row: BatchRow): Batch => ({
  batchId: row.batch_id,
  productKey: row.product_key as ProductKey,
  size: row.size,
  description: row.description,
  createdAt: row.created_at
})

export const make = (
  sql: Sqlite["Service"],
  secrets: Secrets["Service"]
): Pick<DeviceStore["Service"], "insertBatch" | "listBatches" | "getBatch" | "devicesOfBatch" | "removeBatch"> => {
  const find = (projectId: ProjectId, productKey: ProductKey, batchId: number) =>
    Option.map(
      Option.fromUndefinedOr(
        sql.get<BatchRow>("SELECT * FROM device_batch WHERE batch_id = ? AND project_id = ? AND product_key = ?", [
          batchId,
          projectId,
          productKey
        ])
      ),
      batchFromRow
    )

  return {
    insertBatch: (projectId, productKey, { createdAt, description }, drafts) =>
      sql.write("DeviceStore.insertBatch", () => {
        if (!hasProduct(sql, projectId, productKey)) return Option.none()
        const taken = takenNames(sql, productKey, drafts)
        if (taken !== undefined) return taken
        const batch = batchFromRow(
          sql.get<BatchRow>(
            `INSERT INTO device_batch (project_id, product_key, size, description, created_at)
            VALUES (?, ?, ?, ?, ?) RETURNING *`,
            [projectId, productKey, drafts.length, description, createdAt]
          )!
        )
        const { batchId } = batch
        for (const draft of drafts) {
          const device = { ...draft, nickname: "", batchId, cloudGateway: null, createdAt }
          insertDevice(sql, secrets, { projectId, productKey }, device, null)
        }
        return Option.some(batch)
      }).pipe(unlessTaken),
    listBatches: (projectId, productKey, page) =>
      sql.read("DeviceStore.listBatches", () => {
        const { items, total } = pageOf<BatchRow>(sql, {
          table: "device_batch",
          where: "project_id = ? AND product_key = ?",
          values: [projectId, productKey],
          order: "created_at DESC, batch_id DESC",
          page
        })
        return { items: items.map(batchFromRow), total }
      }),
    getBatch: (projectId, productKey, batchId) =>
      sql.read("DeviceStore.getBatch", () => find(projectId, productKey, batchId)),
    devicesOfBatch: (projectId, batchId, { after, limit }) =>
      sql.read("DeviceStore.devicesOfBatch", () =>
        sql.all<DeviceRow>(
          `SELECT * FROM device WHERE batch_id = ? AND batch_id <> 0 AND project_id = ? AND id > ?
            ORDER BY id LIMIT ?`,
          [batchId, projectId, after ?? 0, limit]
        ).map((row) => ({
          id: row.id,
          deviceId: row.device_id as DeviceId,
          deviceName: row.device_name as DeviceName,
          deviceSecret: deviceSecretOf(secrets, row)
        }))),
    removeBatch: (projectId, productKey, batchId) =>
      sql.write("DeviceStore.removeBatch", () =>
        Option.map(find(projectId, productKey, batchId), () => {
          const devices = sql.all<IdentityRow>(
            `SELECT ${identityColumns} FROM device JOIN product USING (product_key)
              WHERE batch_id = ? AND batch_id <> 0`,
            [batchId]
          )
          sql.run("DELETE FROM device WHERE batch_id = ? AND batch_id <> 0", [batchId])
          sql.run("DELETE FROM device_batch WHERE batch_id = ?", [batchId])
          return devices.map(identityFromRow)
        }))
  }
}
