/**
 * The part of `OtaStore` that keeps firmware.
 */
import type { FirmwareDetail, OtaStore, ProductKey, SigningAlgorithm, SigningKey } from "@device-cloud/core"
import { Option } from "effect"
import { firmwareFromRow, type FirmwareRow } from "./OtaRow.ts"
import { pageOf } from "./Paging.ts"
import type { Sqlite } from "./Sqlite.ts"

interface SigningKeyRow {
  readonly product_key: string
  readonly key_id: string
  readonly algorithm: SigningAlgorithm
  readonly public_key: string
  readonly created_at: number
}

const signingKeyFromRow = (row: SigningKeyRow): SigningKey => ({
  productKey: row.product_key as ProductKey,
  keyId: row.key_id,
  algorithm: row.algorithm,
  publicKey: row.public_key,
  createdAt: row.created_at
})

type FirmwareDetailRow = FirmwareRow & { readonly product_name: string; readonly ongoing: number }

const detailFromRow = (row: FirmwareDetailRow): FirmwareDetail => ({
  firmware: firmwareFromRow(row),
  productName: row.product_name,
  ongoing: row.ongoing === 1
})

const isOngoing = `EXISTS (
  SELECT 1 FROM ota_task WHERE ota_task.firmware_id = firmware.firmware_id AND ota_task.is_ongoing = 1
)`
/** Also of a task that has ended, a record may not have. */
const isOpen = `(${isOngoing} OR EXISTS (
  SELECT 1 FROM ota_task JOIN ota_record USING (task_id)
  WHERE ota_task.firmware_id = firmware.firmware_id AND ota_record.is_open = 1
))`
/** The select list of {@link FirmwareDetailRow}, for {@link detailTables}. */
const detailColumns = `firmware.*, product.name AS product_name, ${isOngoing} AS ongoing`
const detailTables = "firmware JOIN product USING (product_key)"

export const make = (
  sql: Sqlite["Service"]
): Pick<
  OtaStore["Service"],
  | "signingKey"
  | "setSigningKey"
  | "removeSigningKey"
  | "insertFirmware"
  | "firmware"
  | "listFirmwares"
  | "removeFirmware"
  | "upgradingFrom"
> => {
  const find = (projectId: string, firmwareId: number): FirmwareDetail | undefined => {
    const row = sql.get<FirmwareDetailRow>(
      `SELECT ${detailColumns} FROM ${detailTables} WHERE firmware_id = ? AND firmware.project_id = ?`,
      [firmwareId, projectId]
    )
    return row === undefined ? undefined : detailFromRow(row)
  }

  return {
    signingKey: (projectId, productKey) =>
      sql.read("OtaStore.signingKey", () => {
        const row = sql.get<SigningKeyRow>(
          `SELECT firmware_key.* FROM firmware_key JOIN product USING (product_key)
            WHERE product_key = ? AND project_id = ?`,
          [productKey, projectId]
        )
        return Option.map(Option.fromUndefinedOr(row), signingKeyFromRow)
      }),
    setSigningKey: (projectId, { algorithm, createdAt, keyId, productKey, publicKey }) =>
      sql.write("OtaStore.setSigningKey", () =>
        sql.run(
          `INSERT OR REPLACE INTO firmware_key (product_key, key_id, algorithm, public_key, created_at)
            SELECT product_key, ?, ?, ?, ? FROM product WHERE project_id = ? AND product_key = ?`,
          [keyId, algorithm, publicKey, createdAt, projectId, productKey]
        ) > 0),
    removeSigningKey: (projectId, productKey) =>
      sql.write("OtaStore.removeSigningKey", () =>
        sql.run(
          `DELETE FROM firmware_key WHERE product_key IN (
            SELECT product_key FROM product WHERE project_id = ? AND product_key = ?
          )`,
          [projectId, productKey]
        ) > 0),
    insertFirmware: (firmware) =>
      sql.write("OtaStore.insertFirmware", () => {
        const { module, productKey, projectId, signed, version } = firmware
        const product = sql.get("SELECT 1 FROM product WHERE product_key = ? AND project_id = ?", [
          productKey,
          projectId
        ])
        if (product === undefined) return "no-product"
        const row = sql.get<FirmwareRow>(
          `INSERT INTO firmware (project_id, product_key, name, version, oss_path, hash, sha256, signature,
              signing_key_id, signing_algorithm, size, remark, module, status, created_at, updated_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (product_key, module, version) DO NOTHING RETURNING *`,
          [
            projectId,
            productKey,
            firmware.name,
            version,
            firmware.ossPath,
            firmware.hash,
            firmware.sha256,
            signed?.signature ?? null,
            signed?.keyId ?? null,
            signed?.algorithm ?? null,
            firmware.size,
            firmware.remark,
            module,
            firmware.status,
            firmware.createdAt,
            firmware.updatedAt
          ]
        )
        return row === undefined ? "taken" : firmwareFromRow(row)
      }),
    firmware: (projectId, firmwareId) =>
      sql.read("OtaStore.firmware", () => Option.fromUndefinedOr(find(projectId, firmwareId))),
    listFirmwares: (projectId, { name, productKey }, page) =>
      sql.read("OtaStore.listFirmwares", () => {
        const { items, total } = pageOf<FirmwareDetailRow>(sql, {
          table: detailTables,
          columns: detailColumns,
          where: `firmware.project_id = ? ${productKey === undefined ? "" : "AND product_key = ?"} ${
            name === undefined ? "" : "AND instr(firmware.name, ?) > 0"
          }`,
          values: [projectId, ...productKey === undefined ? [] : [productKey], ...name === undefined ? [] : [name]],
          order: "firmware.created_at DESC, firmware_id DESC",
          page
        })
        return { items: items.map(detailFromRow), total }
      }),
    removeFirmware: (projectId, firmwareId) =>
      sql.write("OtaStore.removeFirmware", () => {
        const known = sql.get<{ readonly open: number }>(
          `SELECT ${isOpen} AS open FROM firmware WHERE firmware_id = ? AND project_id = ?`,
          [firmwareId, projectId]
        )
        if (known === undefined) return "not-found"
        if (known.open === 1) return "ongoing"
        sql.run("DELETE FROM firmware WHERE firmware_id = ?", [firmwareId])
        return "removed"
      }),
    upgradingFrom: (projectId, part) =>
      sql.read("OtaStore.upgradingFrom", () => {
        const row = sql.get<FirmwareRow>(
          `SELECT * FROM firmware WHERE project_id = ? AND instr(oss_path, ?) > 0 AND ${isOpen} LIMIT 1`,
          [projectId, part]
        )
        return Option.map(Option.fromUndefinedOr(row), firmwareFromRow)
      })
  }
}
