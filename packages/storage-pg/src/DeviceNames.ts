/**
 * Finds out which names of new devices others have.
 */
import { DeviceNamesTaken, type NewDevice, type ProductKey, type ProjectId } from "@device-cloud/core"
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { texts } from "./PgParameters.ts"

/**
 * Follows an insert that leaves out devices whose names are taken. `stored`: the
 * names that it has inserted. Fails with those of the others that devices of the
 * product have; the transaction must then end.
 */
export const checkStored = Effect.fnUntraced(function*(
  sql: SqlClient.SqlClient,
  projectId: ProjectId,
  productKey: ProductKey,
  devices: ReadonlyArray<Pick<NewDevice, "deviceName">>,
  stored: ReadonlyArray<string>
) {
  if (stored.length === devices.length) return
  const inserted = new Set(stored)
  const others = devices.map(({ deviceName }) => deviceName).filter((name) => !inserted.has(name))
  const [first, ...rest] = yield* sql<{ readonly device_name: string }>`SELECT device_name FROM device
    WHERE project_id = ${projectId} AND product_key = ${productKey} AND device_name = ANY(${texts(others)})
    ORDER BY device_name`
  if (first === undefined) return
  return yield* new DeviceNamesTaken({
    productKey,
    deviceNames: [first.device_name, ...rest.map(({ device_name }) => device_name)]
  })
})
