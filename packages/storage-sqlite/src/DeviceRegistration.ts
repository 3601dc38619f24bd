/**
 * The part of `DeviceStore` in which devices register themselves.
 */
import type { DeviceDetail, DeviceStore, ProjectId } from "@device-cloud/core"
import { insertDevice } from "./DeviceInsertion.ts"
import { deviceDetails, type DeviceRow } from "./Rows.ts"
import type { Secrets } from "./Secrets.ts"
import type { Sqlite } from "./Sqlite.ts"

export const make = (
  sql: Sqlite["Service"],
  secrets: Secrets["Service"]
): Pick<DeviceStore["Service"], "claimByMac" | "claimByName"> => {
  const register = (row: DeviceRow, mac: string): DeviceDetail | "active" => {
    if (row.activated_at !== null) return "active"
    const registered = sql.get<DeviceRow>("UPDATE device SET mac = ? WHERE id = ? RETURNING *", [mac, row.id])
    return deviceDetails(sql, secrets, [registered!])[0]!
  }

  return {
    claimByMac: (productKey, mac) =>
      sql.write("DeviceStore.claimByMac", () => {
        const device = sql.get<DeviceRow>(
          "SELECT * FROM device WHERE product_key = ? AND mac = ? AND mac <> ''",
          [productKey, mac]
        ) ?? sql.get<DeviceRow>(
          `SELECT * FROM device WHERE product_key = ? AND mac IS NULL AND activated_at IS NULL AND enabled
            ORDER BY id LIMIT 1`,
          [productKey]
        )
        return device === undefined ? "none" : register(device, mac)
      }),
    claimByName: (productKey, deviceName, draft) =>
      sql.write("DeviceStore.claimByName", () => {
        const find = () =>
          sql.get<DeviceRow>("SELECT * FROM device WHERE product_key = ? AND device_name = ?", [
            productKey,
            deviceName
          ])
        const known = find()
        if (known !== undefined) return register(known, known.mac ?? "")
        const product = sql.get<Pick<DeviceRow, "project_id">>(
          "SELECT project_id FROM product WHERE product_key = ?",
          [productKey]
        )
        if (product === undefined || draft === undefined) return "none"
        insertDevice(sql, secrets, { projectId: product.project_id as ProjectId, productKey }, draft, "")
        return deviceDetails(sql, secrets, [find()!])[0]!
      })
  }
}
