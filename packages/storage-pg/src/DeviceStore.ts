/**
 * Devices on PostgreSQL.
 */
import {
  type DeviceCounts,
  type DeviceId,
  type DeviceName,
  type DeviceReference,
  DeviceStore,
  type KeyRing,
  type KeyRingError,
  maxTags,
  type NewDevice,
  type ProductKey,
  type ProjectId,
  type Rotation
} from "@device-cloud/core"
import { type PgClient, PgTypes } from "@effect/sql-pg"
import { Effect, Layer, Option } from "effect"
import type { Statement } from "effect/sql"
import * as DeviceBatches from "./DeviceBatches.ts"
import { checkStored } from "./DeviceNames.ts"
import * as DeviceLookUps from "./DeviceLookUps.ts"
import { devicePage } from "./DevicePages.ts"
import * as DeviceRegistration from "./DeviceRegistration.ts"
import { removeDevices } from "./DeviceRemoval.ts"
import {
  deviceDetailColumns,
  deviceDetailFromRow,
  type DeviceDetailRow,
  deviceFromRow,
  type DeviceRow
} from "./DeviceRow.ts"
import { clients } from "./LongReads.ts"
import { type DatabaseError, isForeignKeyViolation, storeError } from "./PgErrors.ts"
import { instant, instants, texts, wholeNumbers } from "./PgParameters.ts"
import { SealedSecrets } from "./SealedSecrets.ts"
import { placeOf } from "./SecretColumns.ts"

/** Part of the group that is replaced together: everything about a device goes with it. */
export const layer: Layer.Layer<DeviceStore, DatabaseError | KeyRingError, PgClient.PgClient | KeyRing> = Layer.effect(
  DeviceStore,
  Effect.suspend(() => make)
).pipe(Layer.provide(SealedSecrets.layer))

const make = Effect.gen(function*() {
  const { reads, sql } = yield* clients
  const secrets = yield* SealedSecrets
  const { byId, byName } = yield* DeviceLookUps.make(sql, secrets)
  const columns = sql.literal(deviceDetailColumns)

  const where = (projectId: ProjectId, reference: DeviceReference): Statement.Fragment =>
    "deviceId" in reference
      ? sql`device.project_id = ${projectId} AND device.device_id = ${reference.deviceId}`
      : sql`device.project_id = ${projectId} AND device.product_key = ${reference.productKey}
          AND device.device_name = ${reference.deviceName}`

  const fromRow = (row: DeviceDetailRow) => deviceDetailFromRow(secrets, row)

  const first = (rows: ReadonlyArray<DeviceDetailRow>) =>
    Effect.map(secrets.ready(rows), ([row]) => Option.map(Option.fromUndefinedOr(row), fromRow))

  /** Calls for one product take turns, also with those of batches: two with the same names would wait for each other. */
  const insertMany = (projectId: ProjectId, productKey: ProductKey, devices: ReadonlyArray<NewDevice>) => {
    const { key, number } = secrets.current()
    const seal = (deviceId: string, secret: string, column: string) =>
      key.seal(secret, placeOf("device", deviceId, column))
    return sql<DeviceRow>`
        INSERT INTO device (project_id, product_key, device_id, device_name, device_secret, sealed_with, nickname,
          batch_id, cloud_gateway, cloud_gateway_password, created_at, updated_at)
        SELECT product.project_id, product.product_key, new.device_id, new.device_name, new.device_secret,
          ${number}::int, new.nickname, new.batch_id, new.cloud_gateway::json, new.cloud_gateway_password,
          new.created_at, new.created_at
        FROM product, unnest(
          ${texts(devices.map(({ deviceId }) => deviceId))},
          ${texts(devices.map(({ deviceName }) => deviceName))},
          ${texts(devices.map(({ deviceId, deviceSecret }) => seal(deviceId, deviceSecret, "device_secret")))},
          ${texts(devices.map(({ nickname }) => nickname))},
          ${wholeNumbers(devices.map(({ batchId }) => batchId))}::bigint[],
          ${
      texts(devices.map(({ cloudGateway }) =>
        cloudGateway === null ? null : JSON.stringify({ ...cloudGateway, password: undefined })
      ))
    },
          ${
      texts(devices.map(({ cloudGateway, deviceId }) =>
        cloudGateway === null ? null : seal(deviceId, cloudGateway.password, "cloud_gateway_password")
      ))
    },
          ${instants(devices.map(({ createdAt }) => createdAt))}
        ) WITH ORDINALITY
          AS new (device_id, device_name, device_secret, nickname, batch_id, cloud_gateway, cloud_gateway_password,
            created_at, position)
        WHERE product.project_id = ${projectId} AND product.product_key = ${productKey}
        ORDER BY new.position FOR NO KEY UPDATE OF product
        ON CONFLICT (product_key, device_name) DO NOTHING
        RETURNING *`.pipe(
      Effect.tap((rows) =>
        checkStored(sql, projectId, productKey, devices, rows.map(({ device_name }) => device_name))
      ),
      sql.withTransaction,
      Effect.map((rows) =>
        rows.length === devices.length ? Option.some(rows.map((row) => deviceFromRow(secrets, row))) : Option.none()
      ),
      Effect.catchTag("SqlError", (error) =>
        isForeignKeyViolation(error)
          ? Effect.succeedNone
          : Effect.fail(storeError("DeviceStore.insertMany")(error)))
    )
  }

  const rotateSecret = Effect.fnUntraced(
    function*(projectId: ProjectId, deviceId: DeviceId, { at, previousUntil, secret }: Rotation) {
      const rows = yield* sql<DeviceDetailRow>`SELECT ${columns} FROM device JOIN product USING (product_key)
        WHERE ${where(projectId, { deviceId })} FOR NO KEY UPDATE OF device`
      const [before] = yield* secrets.readyOrFail(rows)
      if (before === undefined) return Option.none()
      const { cloudGateway, deviceSecret } = deviceFromRow(secrets, before)
      const { key, number } = secrets.current()
      const seal = (text: string, column: string) => key.seal(text, placeOf("device", deviceId, column))
      const changed = yield* sql<DeviceDetailRow>`UPDATE device SET
          device_secret = ${seal(secret, "device_secret")},
          previous_secret = ${PgTypes.text(previousUntil === null ? null : seal(deviceSecret, "previous_secret"))},
          previous_secret_until = ${instant(previousUntil)},
          cloud_gateway = (cloud_gateway::jsonb - 'password')::json,
          cloud_gateway_password = ${
        PgTypes.text(cloudGateway === null ? null : seal(cloudGateway.password, "cloud_gateway_password"))
      },
          sealed_with = ${number}::int,
          updated_at = ${instant(at)}
        FROM product
        WHERE product.product_key = device.product_key AND ${where(projectId, { deviceId })}
        RETURNING ${columns}`
      return yield* first(changed)
    },
    sql.withTransaction
  )

  return DeviceStore.of({
    insertMany,
    count: (projectId) =>
      sql<Record<keyof DeviceCounts, number>>`
        SELECT coalesce(sum(devices) FILTER (WHERE status = 'online'), 0)::float8 AS online,
          coalesce(sum(devices) FILTER (WHERE status = 'offline'), 0)::float8 AS offline,
          coalesce(sum(devices) FILTER (WHERE status = 'unactive'), 0)::float8 AS unactive,
          coalesce(sum(devices) FILTER (WHERE NOT enabled), 0)::float8 AS disabled
        FROM device_count WHERE project_id = ${projectId}`.pipe(
        Effect.map(([row]) => row!),
        Effect.mapError(storeError("DeviceStore.count"))
      ),
    get: (projectId, reference) =>
      ("deviceId" in reference
        ? Effect.map(byId(reference.deviceId), Option.filter(({ device }) => device.projectId === projectId))
        : Effect.flatMap(
          sql<DeviceDetailRow>`SELECT ${columns} FROM device JOIN product USING (product_key)
            WHERE ${where(projectId, reference)}`,
          first
        )).pipe(Effect.mapError(storeError("DeviceStore.get"))),
    credentials: (productKey, deviceName) =>
      Effect.mapError(byName({ productKey, deviceName }), storeError("DeviceStore.credentials")),
    list: (projectId, filter, page) =>
      devicePage(reads, projectId, filter, page).pipe(
        Effect.flatMap(({ items, total }) =>
          Effect.map(secrets.ready(items), (rows) => ({ items: rows.map(fromRow), total }))
        ),
        Effect.mapError(storeError("DeviceStore.list"))
      ),
    ofProduct: (productKey, { after, limit }) =>
      reads<Pick<DeviceRow, "id" | "device_id" | "device_name" | "created_at">>`
        SELECT id, device_id, device_name, created_at FROM device
        WHERE product_key = ${productKey} AND id > ${after ?? 0}::bigint ORDER BY id LIMIT ${limit}`.pipe(
        Effect.map((rows) =>
          rows.map((row) => ({
            id: Number(row.id),
            deviceId: row.device_id as DeviceId,
            deviceName: row.device_name as DeviceName,
            createdAt: row.created_at.getTime()
          }))
        ),
        Effect.mapError(storeError("DeviceStore.ofProduct"))
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
        Effect.flatMap(first),
        Effect.mapError(storeError("DeviceStore.update"))
      ),
    rotateSecret: (projectId, deviceId, rotation) =>
      Effect.mapError(rotateSecret(projectId, deviceId, rotation), storeError("DeviceStore.rotateSecret")),
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
      removeDevices<DeviceDetailRow>(sql, where(projectId, { deviceId }), columns).pipe(
        Effect.flatMap(first),
        Effect.mapError(storeError("DeviceStore.remove"))
      ),
    ...DeviceBatches.make(sql, secrets, reads),
    ...DeviceRegistration.make(sql, secrets)
  })
})
