/**
 * Shadows as rows, read and written within a transaction.
 */
import { type DeviceId, emptyShadow, type Shadow, type ShadowModification } from "@device-cloud/core"
import { Option } from "effect"
import type { Statements } from "./Sqlite.ts"

export interface ShadowRow {
  readonly device_id: string
  /** Null, as the others: the device has no shadow yet. */
  readonly version: number | null
  readonly reported: string | null
  readonly desired: string | null
  readonly updated_at: number | null
}

export const shadowFromRow = (row: ShadowRow): Shadow =>
  row.version === null || row.reported === null || row.desired === null ? emptyShadow(row.device_id as DeviceId) : {
    deviceId: row.device_id as DeviceId,
    version: row.version,
    reported: JSON.parse(row.reported),
    desired: JSON.parse(row.desired),
    updatedAt: row.updated_at
  }

/** Returns the shadow of a device; undefined: the device does not exist. */
export const findShadow = (sql: Statements, deviceId: DeviceId): Shadow | undefined => {
  const row = sql.get<ShadowRow>(
    `SELECT device.device_id, version, reported, desired, shadow.updated_at
      FROM device LEFT JOIN shadow USING (device_id) WHERE device.device_id = ?`,
    [deviceId]
  )
  return row && shadowFromRow(row)
}

export const putShadow = (sql: Statements, { desired, deviceId, reported, updatedAt, version }: Shadow): void => {
  sql.run(
    `INSERT INTO shadow (device_id, version, reported, desired, updated_at) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (device_id) DO UPDATE SET version = excluded.version, reported = excluded.reported,
        desired = excluded.desired, updated_at = excluded.updated_at`,
    [deviceId, version, JSON.stringify(reported), JSON.stringify(desired), updatedAt]
  )
}

/** Changes a shadow. Returns none if the device does not exist. */
export const modifyShadow = <A>(sql: Statements, { deviceId, modify }: ShadowModification<A>): Option.Option<A> => {
  const before = findShadow(sql, deviceId)
  if (before === undefined) return Option.none()
  const [result, shadow] = modify(before)
  if (shadow !== before) putShadow(sql, shadow)
  return Option.some(result)
}
