/**
 * Finds out which devices that a call names do not exist.
 */
import type { DeviceId, ProductKey, ProjectId } from "@device-cloud/core"
import type { Statements } from "./Sqlite.ts"

/** Returns those of the devices that the project, or the product if it is given, does not have. */
export const unknownDevices = (
  sql: Statements,
  { productKey, projectId }: { readonly projectId: ProjectId; readonly productKey?: ProductKey },
  deviceIds: ReadonlyArray<DeviceId>
): ReadonlyArray<DeviceId> =>
  deviceIds.filter((deviceId) => {
    const device = sql.get<{ readonly project_id: string; readonly product_key: string }>(
      "SELECT project_id, product_key FROM device WHERE device_id = ?",
      [deviceId]
    )
    return device?.project_id !== projectId || productKey !== undefined && device.product_key !== productKey
  })
