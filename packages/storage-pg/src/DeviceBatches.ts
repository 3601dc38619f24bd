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
import { Array, Effect, Option, Stream } from "effect"
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
  /** Stores devices of a batch, and returns the names of those whose names nobody had. */
  const insertDevices = (batch: BatchRow, devices: ReadonlyArray<SealedDevice>, sealedWith: number) =>
    Effect.map(
      sql<{ readonly names: ReadonlyArray<string> }>`
        WITH stored AS (
          INSERT INTO device (project_id, product_key, device_id, device_name, device_secret, sealed_with, nickname,
            batch_id, created_at, updated_at)
          SELECT batch.project_id, batch.product_key, new.device_id, new.device_name, new.device_secret,
            ${sealedWith}::int, '', batch.batch_id, batch.created_at, batch.created_at
          FROM device_batch AS batch, unnest(
            ${texts(devices.map(({ deviceId }) => deviceId))},
            ${texts(devices.map(({ deviceName }) => deviceName))},
            ${texts(devices.map(({ sealedSecret }) => sealedSecret))}
          ) WITH ORDINALITY AS new (device_id, device_name, device_secret, position)
          WHERE batch.batch_id = ${batch.batch_id}
          ORDER BY new.position
          ON CONFLICT (product_key, device_name) DO NOTHING
          RETURNING device_name
        )
        SELECT coalesce(array_agg(device_name), '{}') AS names FROM stored`,
      ([row]) => row!.names
    )

  /**
   * Stores the batch and its devices, and returns the batch alone. Batches of one
   * product take turns: two with the same names would wait for each other. Secrets
   * are sealed while PostgreSQL stores those before them.
   */
  const insertBatch = Effect.fnUntraced(function*(
    projectId: ProjectId,
    productKey: ProductKey,
    batch: Pick<Batch, "description" | "createdAt">,
    devices: ReadonlyArray<Pick<NewDevice, "deviceId" | "deviceName" | "deviceSecret">>
  ) {
    const { key, number } = secrets.current()
    const [stored] = yield* sql<BatchRow>`
      INSERT INTO device_batch (project_id, product_key, size, description, created_at)
      SELECT project_id, product_key, ${devices.length}::int, ${batch.description}, ${instant(batch.createdAt)}
      FROM product WHERE project_id = ${projectId} AND product_key = ${productKey} FOR NO KEY UPDATE
      RETURNING *`
    if (stored === undefined) return Option.none()
    const names = yield* Stream.fromIterable(Array.chunksOf(devices, sliceSize)).pipe(
      Stream.mapEffect((slice) =>
        mapInSlices(slice, ({ deviceId, deviceName, deviceSecret }) => ({
          deviceId,
          deviceName,
          sealedSecret: key.seal(deviceSecret, placeOf("device", deviceId, "device_secret"))
        }))
      ),
      Stream.buffer({ capacity: 1 }),
      Stream.mapEffect((slice) => insertDevices(stored, slice, number)),
      Stream.runCollect
    )
    yield* checkStored(sql, projectId, productKey, devices, names.flat())
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
    devicesOfBatch: (projectId, batchId, { after, limit }) =>
      reads<Pick<DeviceRow, "id" | "device_id" | "device_name" | "device_secret" | "sealed_with">>`
        SELECT id, device_id, device_name, device_secret, sealed_with FROM device
        WHERE batch_id = ${batchId} AND batch_id <> 0 AND project_id = ${projectId} AND id > ${after ?? 0}::bigint
        ORDER BY id LIMIT ${limit}`.pipe(
        Effect.flatMap(secrets.readyOrFail),
        Effect.flatMap((rows) =>
          mapInSlices(rows, (row) => ({
            id: Number(row.id),
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

/** Devices that one statement stores. */
const sliceSize = 1000

interface SealedDevice extends Pick<NewDevice, "deviceId" | "deviceName"> {
  readonly sealedSecret: string
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
