/**
 * Finds out which devices that a call names do not exist.
 */
import type { DeviceId, ProductKey, ProjectId } from "@device-cloud/core"
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { texts } from "./PgParameters.ts"

/** Returns those of the devices that the project, or the product if it is given, does not have. */
export const unknownDevices = Effect.fnUntraced(function*(
  sql: SqlClient.SqlClient,
  { productKey, projectId }: { readonly projectId: ProjectId; readonly productKey?: ProductKey },
  deviceIds: ReadonlyArray<DeviceId>
) {
  const rows = yield* sql<{ readonly device_id: string }>`SELECT device_id FROM device
    WHERE device_id = ANY(${texts(deviceIds)}) AND project_id = ${projectId}
      AND ${productKey === undefined ? sql`true` : sql`product_key = ${productKey}`}`
  const known = new Set(rows.map(({ device_id }) => device_id))
  return deviceIds.filter((deviceId) => !known.has(deviceId))
})
