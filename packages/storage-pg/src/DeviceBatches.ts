/**
 * The part of `DeviceStore` about batches: devices that are created together.
 */
import {
  type Batch,
  type DeviceId,
  type DeviceName,
  type DeviceStore,
  type NewDevice,
  type ProductKey,
  type ProjectId
} from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Option } from "effect"
import { checkStored } from "./DeviceNames.ts"
import { removeDevices } from "./DeviceRemoval.ts"
import { type DeviceRow, deviceSecretFromRow, identityColumns, identityFromRow, type IdentityRow } from "./DeviceRow.ts"
import { paginate } from "./Pagination.ts"
import { isForeignKeyViolation, storeError } from "./PgErrors.ts"
import { instant, texts } from "./PgParameters.ts"
import type { SealedSecrets } from "./SealedSecrets.ts"
import { mapInSlices } from "./Slices.ts"
import { placeOf } from "./SecretColumns.ts"

export const make = (
  sql: PgClient.PgClient,
  secrets: SealedSecrets["Service"],
  reads: PgClient.PgClient
): Pick<DeviceStore["Service"], "insertBatch" | "listBatches" | "getBatch" | "devicesOfBatch" | "removeBatch"> => {
  /**
   * Stores the batch and its devices, and returns the batch alone. Batches of one
   * product take turns: two with the same names would wait for each other.
   */
  const insertBatch = Effect.fnUntraced(function*(
    projectId: ProjectId,
    productKey: ProductKey,
    batch: Pick<Batch, "description" | "createdAt">,
    devices: ReadonlyArray<Pick<NewDevice, "deviceId" | "deviceName" | "deviceSecret">>
  ) {
    const { key, number } = secrets.current()
    const sealed = yield* mapInSlices(
      devices,
      ({ deviceId, deviceSecret }) => key.seal(deviceSecret, placeOf("device", deviceId, "device_secret"))
    )
    const [stored] = yield* sql<BatchRow & { readonly names: ReadonlyArray<string> }>`
      WITH batch AS (
        INSERT INTO device_batch (project_id, product_key, size, description, created_at)
        SELECT project_id, product_key, ${devices.length}::int, ${batch.description}, ${instant(batch.createdAt)}
        FROM product WHERE project_id = ${projectId} AND product_key = ${productKey} FOR NO KEY UPDATE
        RETURNING *
      ), devices AS (
        INSERT INTO device (project_id, product_key, device_id, device_name, device_secret, sealed_with, nickname,
          batch_id, created_at, updated_at)
        SELECT batch.project_id, batch.product_key, new.device_id, new.device_name, new.device_secret,
          ${number}::int, '', batch.batch_id, batch.created_at, batch.created_at
        FROM batch, unnest(
          ${texts(devices.map(({ deviceId }) => deviceId))},
          ${texts(devices.map(({ deviceName }) => deviceName))},
          ${texts(sealed)}
        ) WITH ORDINALITY AS new (device_id, device_name, device_secret, position)
        ORDER BY new.position
        ON CONFLICT (product_key, device_name) DO NOTHING
        RETURNING device_name
      )
      SELECT *, ARRAY(SELECT device_name FROM devices) AS names FROM batch`
    if (stored === undefined) return Option.none()
    yield* checkStored(sql, projectId, productKey, devices, stored.names)
    return Option.some(batchFromRow(stored))
  }, sql.withTransaction)

  return {
    insertBatch: (projectId, productKey, batch, devices) =>
      insertBatch(projectId, productKey, batch, devices).pipe(
        Effect.catchTag("SqlError", (error) =>
          isForeignKeyViolation(error)
            ? Effect.succeedNone
            : Effect.fail(storeError("DeviceStore.insertBatch")(error)))
      ),
    listBatches: (projectId, productKey, page) =>
      paginate<BatchRow>(reads, {
        table: "device_batch",
        where: sql`project_id = ${projectId} AND product_key = ${productKey}`,
        tieBreaker: "batch_id",
        select: sql`SELECT * FROM page`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(batchFromRow), total })),
        Effect.mapError(storeError("DeviceStore.listBatches"))
      ),
    getBatch: (projectId, productKey, batchId) =>
      sql<BatchRow>`SELECT * FROM device_batch
        WHERE batch_id = ${batchId} AND project_id = ${projectId} AND product_key = ${productKey}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), batchFromRow)),
        Effect.mapError(storeError("DeviceStore.getBatch"))
      ),
    devicesOfBatch: (projectId, batchId) =>
      reads<Pick<DeviceRow, "device_id" | "device_name" | "device_secret" | "sealed_with">>`
        SELECT device_id, device_name, device_secret, sealed_with FROM device
        WHERE batch_id = ${batchId} AND batch_id <> 0 AND project_id = ${projectId} ORDER BY id`.pipe(
        Effect.flatMap(secrets.ready),
        Effect.flatMap((rows) =>
          mapInSlices(rows, (row) => ({
            deviceId: row.device_id as DeviceId,
            deviceName: row.device_name as DeviceName,
            deviceSecret: deviceSecretFromRow(secrets, row)
          }))
        ),
        Effect.mapError(storeError("DeviceStore.devicesOfBatch"))
      ),
    removeBatch: (projectId, productKey, batchId) =>
      Effect.gen(function*() {
        const [batch] = yield* sql`DELETE FROM device_batch
          WHERE batch_id = ${batchId} AND project_id = ${projectId} AND product_key = ${productKey}
          RETURNING batch_id`
        if (batch === undefined) return Option.none()
        const rows = yield* removeDevices<IdentityRow>(
          sql,
          sql`device.batch_id = ${batchId} AND device.batch_id <> 0`,
          sql.literal(identityColumns)
        )
        return Option.some(rows.map(identityFromRow))
      }).pipe(sql.withTransaction, Effect.mapError(storeError("DeviceStore.removeBatch")))
  }
}

interface BatchRow {
  readonly batch_id: bigint
  readonly product_key: string
  readonly size: number
  readonly description: string
  readonly created_at: Date
}

const batchFromRow = (row: BatchRow): Batch => ({
  batchId: Number(row.batch_id),
  productKey: row.product_key as ProductKey,
  size: row.size,
  description: row.description,
  createdAt: row.created_at.getTime()
})
