/**
 * Devices on PostgreSQL.
 */
import {
  type Batch,
  type DeviceFilter,
  type DeviceId,
  deviceKey,
  type DeviceName,
  type DeviceReference,
  DeviceStore,
  maxTags,
  type NewDevice,
  type ProductKey,
  type ProjectId
} from "@device-cloud/core"
import { PgClient, PgTypes } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import type { Statement } from "effect/sql"
import {
  deviceDetailColumns,
  deviceDetailFromRow,
  type DeviceDetailRow,
  deviceFromRow,
  type DeviceRow,
  identityColumns,
  identityFromRow,
  type IdentityRow
} from "./DeviceRow.ts"
import * as LookUps from "./LookUps.ts"
import { paginate } from "./Pagination.ts"
import { isForeignKeyViolation, isUniqueViolation, storeError } from "./PgErrors.ts"
import { eachByIndex, instant, instants, texts, wholeNumbers } from "./PgParameters.ts"

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

/** It comes after every other one, also in UTF-8. */
const lastCharacter = "\u{10ffff}"

const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const columns = sql.literal(deviceDetailColumns)

  const where = (projectId: ProjectId, reference: DeviceReference): Statement.Fragment =>
    "deviceId" in reference
      ? sql`device.project_id = ${projectId} AND device.device_id = ${reference.deviceId}`
      : sql`device.project_id = ${projectId} AND device.product_key = ${reference.productKey}
          AND device.device_name = ${reference.deviceName}`

  const matches = (projectId: ProjectId, filter: DeviceFilter): Statement.Fragment =>
    sql.and([
      sql`project_id = ${projectId}`,
      ...filter.productKey === undefined ? [] : [sql`product_key = ${filter.productKey}`],
      // 0 says that a device is in no batch; the index of batches leaves those out.
      ...filter.batchId === undefined
        ? []
        : [filter.batchId === 0 ? sql`batch_id = 0` : sql`batch_id = ${filter.batchId} AND batch_id <> 0`],
      ...filter.enabled === undefined ? [] : [filter.enabled ? sql`enabled` : sql`NOT enabled`],
      ...filter.status === undefined ? [] : [sql`status = ${filter.status}`],
      ...filter.tag === undefined
        ? []
        : [sql`tags <> '{}' AND tags @> ${JSON.stringify(Object.fromEntries([filter.tag]))}::jsonb`],
      ...filter.keyword === undefined ? [] : [beginsWith(filter.keyword)]
    ])

  /** In ranges, which indexes can follow. */
  const beginsWith = (keyword: string): Statement.Fragment => {
    const end = keyword + lastCharacter
    return sql`(device_name >= ${keyword} AND device_name <= ${end}
      OR nickname <> '' AND nickname COLLATE "C" >= ${keyword} AND nickname COLLATE "C" <= ${end})`
  }

  const first = ([row]: ReadonlyArray<DeviceDetailRow>) => Option.map(Option.fromUndefinedOr(row), deviceDetailFromRow)

  const unlessActive = (row: DeviceDetailRow) => row.activated_at === null ? deviceDetailFromRow(row) : "active"

  const insertMany = (projectId: ProjectId, productKey: ProductKey, devices: ReadonlyArray<NewDevice>) =>
    sql<DeviceRow>`
        INSERT INTO device (project_id, product_key, device_id, device_name, device_secret, nickname,
          batch_id, cloud_gateway, created_at, updated_at)
        SELECT product.project_id, product.product_key, new.device_id, new.device_name, new.device_secret,
          new.nickname, new.batch_id, new.cloud_gateway::json, new.created_at, new.created_at
        FROM product, unnest(
          ${texts(devices.map(({ deviceId }) => deviceId))},
          ${texts(devices.map(({ deviceName }) => deviceName))},
          ${texts(devices.map(({ deviceSecret }) => deviceSecret))},
          ${texts(devices.map(({ nickname }) => nickname))},
          ${wholeNumbers(devices.map(({ batchId }) => batchId))}::bigint[],
          ${texts(devices.map(({ cloudGateway }) => cloudGateway === null ? null : JSON.stringify(cloudGateway)))},
          ${instants(devices.map(({ createdAt }) => createdAt))}
        ) WITH ORDINALITY
          AS new (device_id, device_name, device_secret, nickname, batch_id, cloud_gateway, created_at, position)
        WHERE product.project_id = ${projectId} AND product.product_key = ${productKey}
        ORDER BY new.position
        RETURNING *`.pipe(
      Effect.map((rows) => rows.length === devices.length ? Option.some(rows.map(deviceFromRow)) : Option.none()),
      Effect.catchIf(isForeignKeyViolation, () => Effect.succeedNone)
    )

  /** With a batch; nothing comes back of the devices. */
  const insertBatch = (
    projectId: ProjectId,
    productKey: ProductKey,
    batch: Pick<Batch, "description" | "createdAt">,
    devices: ReadonlyArray<Pick<NewDevice, "deviceId" | "deviceName" | "deviceSecret">>
  ) =>
    sql<BatchRow>`
      WITH batch AS (
        INSERT INTO device_batch (project_id, product_key, size, description, created_at)
        SELECT project_id, product_key, ${devices.length}::int, ${batch.description}, ${instant(batch.createdAt)}
        FROM product WHERE project_id = ${projectId} AND product_key = ${productKey}
        RETURNING *
      ), devices AS (
        INSERT INTO device (project_id, product_key, device_id, device_name, device_secret, nickname, batch_id,
          created_at, updated_at)
        SELECT batch.project_id, batch.product_key, new.device_id, new.device_name, new.device_secret, '',
          batch.batch_id, batch.created_at, batch.created_at
        FROM batch, unnest(
          ${texts(devices.map(({ deviceId }) => deviceId))},
          ${texts(devices.map(({ deviceName }) => deviceName))},
          ${texts(devices.map(({ deviceSecret }) => deviceSecret))}
        ) WITH ORDINALITY AS new (device_id, device_name, device_secret, position)
        ORDER BY new.position
      )
      SELECT * FROM batch`

  const byId = yield* LookUps.make((deviceIds: ReadonlyArray<DeviceId>) =>
    Effect.map(
      sql<DeviceDetailRow>`SELECT ${columns}
        FROM (SELECT * FROM unnest(${texts(deviceIds)}) ${eachByIndex(sql, deviceIds.length)}) AS asked (device_id)
        JOIN device ON device.device_id = asked.device_id JOIN product ON product.product_key = device.product_key`,
      (rows) => {
        const found = new Map(rows.map((row) => [row.device_id, deviceDetailFromRow(row)]))
        return deviceIds.map((deviceId) => Option.fromUndefinedOr(found.get(deviceId)))
      }
    )
  )

  const byName = yield* LookUps.make((
    names: ReadonlyArray<{ readonly productKey: ProductKey; readonly deviceName: DeviceName }>
  ) =>
    Effect.map(
      sql<IdentityRow & { readonly device_secret: string; readonly enabled: boolean }>`
        SELECT ${sql.literal(identityColumns)}, device.device_secret, device.enabled
        FROM (
          SELECT * FROM unnest(
            ${texts(names.map(({ productKey }) => productKey))},
            ${texts(names.map(({ deviceName }) => deviceName))}
          ) ${eachByIndex(sql, names.length)}
        ) AS asked (product_key, device_name)
        JOIN device ON device.product_key = asked.product_key AND device.device_name = asked.device_name
        JOIN product ON product.product_key = device.product_key`,
      (rows) => {
        const found = new Map(rows.map((row) => {
          const identity = identityFromRow(row)
          return [deviceKey(identity), { identity, deviceSecret: row.device_secret, enabled: row.enabled }]
        }))
        return names.map((name) => Option.fromUndefinedOr(found.get(deviceKey(name))))
      }
    )
  )

  /** Removes devices with all that is kept about them, in one statement. */
  const removeWhere = <Row extends object>(which: Statement.Fragment, returning: Statement.Fragment) =>
    sql<Row>`
      WITH removed AS (
        DELETE FROM device USING product
        WHERE product.product_key = device.product_key AND ${which}
        RETURNING ${returning}
      ), commands AS (
        DELETE FROM command WHERE device_id IN (SELECT device_id FROM removed)
      ), samples AS (
        DELETE FROM property_sample WHERE device_id IN (SELECT device_id FROM removed)
      ), events AS (
        DELETE FROM device_event WHERE device_id IN (SELECT device_id FROM removed)
      )
      SELECT * FROM removed`

  return DeviceStore.of({
    insertMany: (projectId, productKey, devices) =>
      Effect.mapError(insertMany(projectId, productKey, devices), storeError("DeviceStore.insertMany")),
    insertBatch: (projectId, productKey, batch, devices) =>
      insertBatch(projectId, productKey, batch, devices).pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), batchFromRow)),
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeedNone),
        Effect.mapError(storeError("DeviceStore.insertBatch"))
      ),
    getBatch: (projectId, productKey, batchId) =>
      sql<BatchRow>`SELECT * FROM device_batch
        WHERE batch_id = ${batchId} AND project_id = ${projectId} AND product_key = ${productKey}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), batchFromRow)),
        Effect.mapError(storeError("DeviceStore.getBatch"))
      ),
    devicesOfBatch: (projectId, batchId) =>
      sql<Pick<DeviceRow, "device_id" | "device_name" | "device_secret">>`
        SELECT device_id, device_name, device_secret FROM device
        WHERE batch_id = ${batchId} AND batch_id <> 0 AND project_id = ${projectId} ORDER BY id`.pipe(
        Effect.map((rows) =>
          rows.map((row) => ({
            deviceId: row.device_id as DeviceId,
            deviceName: row.device_name as DeviceName,
            deviceSecret: row.device_secret
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
        const rows = yield* removeWhere<IdentityRow>(
          sql`device.batch_id = ${batchId} AND device.batch_id <> 0`,
          sql.literal(identityColumns)
        )
        return Option.some(rows.map(identityFromRow))
      }).pipe(sql.withTransaction, Effect.mapError(storeError("DeviceStore.removeBatch"))),
    get: (projectId, reference) =>
      ("deviceId" in reference
        ? Effect.map(byId(reference.deviceId), Option.filter(({ device }) => device.projectId === projectId))
        : Effect.map(
          sql<DeviceDetailRow>`SELECT ${columns} FROM device JOIN product USING (product_key)
            WHERE ${where(projectId, reference)}`,
          first
        )).pipe(Effect.mapError(storeError("DeviceStore.get"))),
    credentials: (productKey, deviceName) =>
      Effect.mapError(byName({ productKey, deviceName }), storeError("DeviceStore.credentials")),
    claimByMac: (productKey, mac) => {
      const attempt = Effect.gen(function*() {
        const known = yield* sql<DeviceDetailRow>`SELECT ${columns} FROM device JOIN product USING (product_key)
          WHERE device.product_key = ${productKey} AND device.mac = ${mac} AND device.mac <> ''`
        if (known[0] !== undefined) return unlessActive(known[0])
        const [claimed] = yield* sql<DeviceDetailRow>`
          WITH free AS (
            SELECT device_id FROM device
            WHERE product_key = ${productKey} AND mac IS NULL AND activated_at IS NULL AND enabled
            ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
          )
          UPDATE device SET mac = ${mac} FROM free, product
          WHERE device.device_id = free.device_id AND product.product_key = device.product_key
          RETURNING ${columns}`
        if (claimed !== undefined) return deviceDetailFromRow(claimed)
        const [left] = yield* sql`SELECT FROM device
          WHERE product_key = ${productKey} AND activated_at IS NULL AND (mac = ${mac} OR (mac IS NULL AND enabled))
          LIMIT 1`
        // What is left is being given to others, or to this one.
        return left === undefined ? "none" : "wait"
      }).pipe(
        // The same one asked twice at the same moment: it has a device now.
        Effect.catchIf(isUniqueViolation, () => Effect.succeed("wait" as const))
      )
      return attempt.pipe(
        Effect.repeat({ while: (claimed) => claimed === "wait" }),
        Effect.mapError(storeError("DeviceStore.claimByMac"))
      )
    },
    claimByName: (productKey, deviceName, draft) =>
      Effect.gen(function*() {
        const stored = draft === undefined
          ? []
          : yield* sql<DeviceDetailRow>`
            INSERT INTO device (project_id, product_key, device_id, device_name, device_secret, nickname,
              batch_id, cloud_gateway, mac, created_at, updated_at)
            SELECT project_id, product_key, ${draft.deviceId}, ${draft.deviceName}, ${draft.deviceSecret},
              ${draft.nickname}, ${draft.batchId}::bigint, NULL, '', ${instant(draft.createdAt)},
              ${instant(draft.createdAt)}
            FROM product WHERE product_key = ${productKey}
            ON CONFLICT (product_key, device_name) DO NOTHING
            RETURNING device_id`
        const [known] = yield* sql<DeviceDetailRow>`
          UPDATE device SET mac = coalesce(mac, '') FROM product
          WHERE device.product_key = ${productKey} AND device.device_name = ${deviceName}
            AND product.product_key = device.product_key
          RETURNING ${columns}`
        if (known === undefined) return "none"
        return stored.length > 0 ? deviceDetailFromRow(known) : unlessActive(known)
      }).pipe(Effect.mapError(storeError("DeviceStore.claimByName"))),
    list: (projectId, filter, page) =>
      paginate<DeviceDetailRow>(sql, {
        table: "device",
        where: matches(projectId, filter),
        tieBreaker: "id",
        select: sql`SELECT ${columns} FROM page JOIN device USING (device_id)
          JOIN product ON product.product_key = device.product_key`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(deviceDetailFromRow), total })),
        Effect.mapError(storeError("DeviceStore.list"))
      ),
    update: (projectId, deviceId, change) =>
      sql<DeviceDetailRow>`UPDATE device SET
          enabled = coalesce(${PgTypes.bool(change.enabled ?? null)}, enabled),
          bound = coalesce(${PgTypes.bool(change.bound ?? null)}, bound),
          nickname = coalesce(${PgTypes.text(change.nickname ?? null)}, nickname),
          diagnosis_enabled = coalesce(${PgTypes.bool(change.diagnosisEnabled ?? null)}, diagnosis_enabled),
          updated_at = ${instant(change.updatedAt)}
        FROM product
        WHERE product.product_key = device.product_key AND ${where(projectId, { deviceId })}
        RETURNING ${columns}`.pipe(
        Effect.map(first),
        Effect.mapError(storeError("DeviceStore.update"))
      ),
    changeTags: (deviceId, { remove, set }) =>
      sql<{ readonly tags: Readonly<Record<string, string>>; readonly fits: boolean }>`
        WITH changed AS (
          SELECT device_id, ${remove === "all" ? sql`'{}'::jsonb` : sql`tags - ${texts(remove)}`} || ${
        JSON.stringify(set)
      }::jsonb AS tags
          FROM device WHERE device_id = ${deviceId} FOR UPDATE
        ), checked AS (
          SELECT *, (SELECT count(*) FROM jsonb_object_keys(tags)) <= ${maxTags} AS fits FROM changed
        ), stored AS (
          UPDATE device SET tags = checked.tags FROM checked
          WHERE device.device_id = checked.device_id AND checked.fits AND device.tags <> checked.tags
        )
        SELECT tags, fits FROM checked`.pipe(
        Effect.map(([row]) => row === undefined ? "no-device" as const : row.fits ? row.tags : "full" as const),
        Effect.mapError(storeError("DeviceStore.changeTags"))
      ),
    remove: (projectId, deviceId) =>
      removeWhere<DeviceDetailRow>(where(projectId, { deviceId }), columns).pipe(
        Effect.map(first),
        Effect.mapError(storeError("DeviceStore.remove"))
      )
  })
})

export const layer: Layer.Layer<DeviceStore, never, PgClient.PgClient> = Layer.effect(DeviceStore, make)
