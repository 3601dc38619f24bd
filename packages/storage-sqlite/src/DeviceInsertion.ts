/**
 * How devices are stored.
 */
import {
  type Device,
  type DeviceName,
  DeviceNamesTaken,
  type NewDevice,
  type ProductKey,
  type ProjectId
} from "@device-cloud/core"
import { Effect } from "effect"
import { deviceFromRow, type DeviceRow } from "./Rows.ts"
import type { Secrets } from "./Secrets.ts"
import type { Statements } from "./Sqlite.ts"

export const hasProduct = (sql: Statements, projectId: ProjectId, productKey: ProductKey): boolean =>
  sql.get("SELECT 1 FROM product WHERE product_key = ? AND project_id = ?", [productKey, projectId]) !== undefined

/** The names of new devices that devices of the product have; undefined: they have none. */
export const takenNames = (
  sql: Statements,
  productKey: ProductKey,
  drafts: ReadonlyArray<Pick<NewDevice, "deviceName">>
): DeviceNamesTaken | undefined => {
  const [first, ...rest] = sql.all<Pick<DeviceRow, "device_name">>(
    "SELECT device_name FROM device WHERE product_key = ? AND device_name IN (SELECT value FROM json_each(?)) ORDER BY device_name",
    [productKey, JSON.stringify(drafts.map(({ deviceName }) => deviceName))]
  ).map((row) => row.device_name as DeviceName)
  return first === undefined ? undefined : new DeviceNamesTaken({ productKey, deviceNames: [first, ...rest] })
}

/** Fails with the names that are taken, if that is what the transaction has found. */
export const unlessTaken = <A, E>(
  found: Effect.Effect<A | DeviceNamesTaken, E>
): Effect.Effect<A, E | DeviceNamesTaken> =>
  Effect.flatMap(
    found,
    (result) => result instanceof DeviceNamesTaken ? Effect.fail(result) : Effect.succeed(result)
  )

/** Stores a device. `mac` as in `Device`. */
export const insertDevice = (
  sql: Statements,
  secrets: Secrets["Service"],
  { productKey, projectId }: Pick<Device, "productKey" | "projectId">,
  { batchId, cloudGateway, createdAt, deviceId, deviceName, deviceSecret, nickname }: NewDevice,
  mac: string | null
): void => {
  sql.run(
    `INSERT INTO device (project_id, product_key, device_id, device_name, device_secret, nickname, batch_id,
      cloud_gateway, cloud_gateway_password, mac, created_at, updated_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      projectId,
      productKey,
      deviceId,
      deviceName,
      secrets.seal(deviceSecret, ["device", deviceId, "device_secret"]),
      nickname,
      batchId,
      cloudGateway === null ? null : JSON.stringify({ ...cloudGateway, password: undefined }),
      cloudGateway === null
        ? null
        : secrets.seal(cloudGateway.password, ["device", deviceId, "cloud_gateway_password"]),
      mac,
      createdAt,
      createdAt
    ]
  )
}

/** Stores a device, and returns it. */
export const insertedDevice = (
  sql: Statements,
  secrets: Secrets["Service"],
  place: Pick<Device, "productKey" | "projectId">,
  device: NewDevice,
  mac: string | null
): Device => {
  insertDevice(sql, secrets, place, device, mac)
  return deviceFromRow(secrets, sql.get<DeviceRow>("SELECT * FROM device WHERE device_id = ?", [device.deviceId])!)
}
