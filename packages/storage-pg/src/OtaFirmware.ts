/**
 * The part of `OtaStore` that keeps firmware.
 */
import type { FirmwareDetail, OtaStore, ProductKey, SigningAlgorithm, SigningKey } from "@device-cloud/core"
import type { PgClient } from "@effect/sql-pg"
import { Effect, Option } from "effect"
import { firmwareFromRow, type FirmwareRow, verificationNumber } from "./OtaRow.ts"
import { isOngoing, isUnfinished } from "./OtaRules.ts"
import { clients } from "./LongReads.ts"
import { paginate } from "./Pagination.ts"
import { isForeignKeyViolation, isUniqueViolation, storeError } from "./PgErrors.ts"
import { instant } from "./PgParameters.ts"

export const make: Effect.Effect<
  Pick<
    OtaStore["Service"],
    | "signingKey"
    | "setSigningKey"
    | "removeSigningKey"
    | "insertFirmware"
    | "firmware"
    | "listFirmwares"
    | "removeFirmware"
    | "upgradingFrom"
  >,
  never,
  PgClient.PgClient
> = Effect.gen(function*() {
  const { reads, sql } = yield* clients

  const detailColumns = sql.literal(
    `firmware.*, product.name AS product_name, EXISTS (
      SELECT FROM ota_task WHERE ota_task.firmware_id = firmware.firmware_id AND ota_task.${isOngoing}
    ) AS ongoing`
  )

  return {
    signingKey: (projectId, productKey) =>
      sql<SigningKeyRow>`SELECT firmware_key.* FROM firmware_key JOIN product USING (product_key)
        WHERE product_key = ${productKey} AND project_id = ${projectId}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), signingKeyFromRow)),
        Effect.mapError(storeError("OtaStore.signingKey"))
      ),
    setSigningKey: (projectId, { algorithm, createdAt, keyId, productKey, publicKey }) =>
      sql`INSERT INTO firmware_key (product_key, key_id, algorithm, public_key, created_at)
        SELECT product_key, ${keyId}, ${algorithm}, ${publicKey}, ${instant(createdAt)} FROM product
        WHERE project_id = ${projectId} AND product_key = ${productKey}
        ON CONFLICT (product_key) DO UPDATE SET key_id = excluded.key_id, algorithm = excluded.algorithm,
          public_key = excluded.public_key, created_at = excluded.created_at
        RETURNING product_key`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeed(false)),
        Effect.mapError(storeError("OtaStore.setSigningKey"))
      ),
    removeSigningKey: (projectId, productKey) =>
      sql`DELETE FROM firmware_key USING product
        WHERE firmware_key.product_key = ${productKey} AND product.product_key = ${productKey}
          AND product.project_id = ${projectId}
        RETURNING firmware_key.product_key`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.mapError(storeError("OtaStore.removeSigningKey"))
      ),
    insertFirmware: (firmware) =>
      sql<
        FirmwareRow
      >`INSERT INTO firmware (project_id, product_key, name, version, oss_path, hash, sha256, signature,
          signing_key_id, signing_algorithm, size, remark,
          module, status, created_at, updated_at)
        SELECT project_id, product_key, ${firmware.name}, ${firmware.version}, ${firmware.ossPath}, ${firmware.hash},
          ${firmware.sha256},
          ${firmware.signed?.signature ?? ""}, ${firmware.signed?.keyId ?? ""}, ${firmware.signed?.algorithm ?? ""},
          ${firmware.size}::int, ${firmware.remark}, ${firmware.module},
          ${verificationNumber[firmware.status]}::smallint,
          ${instant(firmware.createdAt)}, ${instant(firmware.updatedAt)}
        FROM product WHERE project_id = ${firmware.projectId} AND product_key = ${firmware.productKey}
        RETURNING *`.pipe(
        Effect.map(([row]) => row === undefined ? "no-product" as const : firmwareFromRow(row)),
        Effect.catchIf(isUniqueViolation, () => Effect.succeed("taken" as const)),
        Effect.catchIf(isForeignKeyViolation, () => Effect.succeed("no-product" as const)),
        Effect.mapError(storeError("OtaStore.insertFirmware"))
      ),
    firmware: (projectId, firmwareId) =>
      sql<FirmwareDetailRow>`SELECT ${detailColumns} FROM firmware JOIN product USING (product_key)
        WHERE firmware_id = ${firmwareId} AND firmware.project_id = ${projectId}`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), firmwareDetail)),
        Effect.mapError(storeError("OtaStore.firmware"))
      ),
    listFirmwares: (projectId, { name, productKey }, page) =>
      paginate<FirmwareDetailRow>(reads, {
        table: "firmware",
        where: sql.and([
          sql`project_id = ${projectId}`,
          ...productKey === undefined ? [] : [sql`product_key = ${productKey}`],
          ...name === undefined ? [] : [sql`strpos(name, ${name}) > 0`]
        ]),
        tieBreaker: "firmware_id",
        select: sql`SELECT ${detailColumns} FROM page JOIN firmware USING (firmware_id)
          JOIN product ON product.product_key = firmware.product_key`,
        page
      }).pipe(
        Effect.map(({ items, total }) => ({ items: items.map(firmwareDetail), total })),
        Effect.mapError(storeError("OtaStore.listFirmwares"))
      ),
    upgradingFrom: (projectId, part) =>
      sql<FirmwareRow>`SELECT * FROM firmware WHERE project_id = ${projectId} AND strpos(oss_path, ${part}) > 0
          AND EXISTS (
            SELECT FROM ota_task WHERE ota_task.firmware_id = firmware.firmware_id AND ${sql.literal(isOpen)}
          )
        LIMIT 1`.pipe(
        Effect.map(([row]) => Option.map(Option.fromUndefinedOr(row), firmwareFromRow)),
        Effect.mapError(storeError("OtaStore.upgradingFrom"))
      ),
    removeFirmware: (projectId, firmwareId) =>
      Effect.gen(function*() {
        const [row] = yield* sql`SELECT firmware_id FROM firmware
          WHERE firmware_id = ${firmwareId} AND project_id = ${projectId} FOR UPDATE`
        if (row === undefined) return "not-found" as const
        // A statement of its own, after the lock: it sees a task that was created while the lock was awaited.
        const ongoing = yield* sql`SELECT task_id FROM ota_task
          WHERE firmware_id = ${firmwareId} AND ${sql.literal(isOpen)} LIMIT 1`
        if (ongoing.length > 0) return "ongoing" as const
        yield* sql`DELETE FROM firmware WHERE firmware_id = ${firmwareId}`
        return "removed" as const
      }).pipe(sql.withTransaction, Effect.mapError(storeError("OtaStore.removeFirmware")))
  }
})

/** About a task: it, or one of its records, has not ended. */
const isOpen = `(ota_task.${isOngoing} OR EXISTS (
  SELECT FROM ota_record WHERE ota_record.task_id = ota_task.task_id AND ota_record.${isUnfinished}
))`

interface SigningKeyRow {
  readonly product_key: string
  readonly key_id: string
  readonly algorithm: string
  readonly public_key: string
  readonly created_at: Date
}

const signingKeyFromRow = (row: SigningKeyRow): SigningKey => ({
  productKey: row.product_key as ProductKey,
  keyId: row.key_id,
  algorithm: row.algorithm as SigningAlgorithm,
  publicKey: row.public_key,
  createdAt: row.created_at.getTime()
})

type FirmwareDetailRow = FirmwareRow & { readonly product_name: string; readonly ongoing: boolean }

const firmwareDetail = (row: FirmwareDetailRow): FirmwareDetail => ({
  firmware: firmwareFromRow(row),
  productName: row.product_name,
  ongoing: row.ongoing
})
