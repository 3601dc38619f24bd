/**
 * Why devices could not connect, on SQLite.
 */
import { type ConnectRefusal, ConnectRefusalStore, keptRefusals } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { Sqlite } from "./Sqlite.ts"

/** Can be replaced alone. Its rows go with their device. */
export const layer: Layer.Layer<ConnectRefusalStore, never, Sqlite> = Layer.effect(
  ConnectRefusalStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

interface Row {
  readonly address: string
  readonly reason: string
  readonly return_code: number
  readonly times: number
  readonly first_at: number
  readonly at: number
}

const fromRow = (row: Row): ConnectRefusal => ({
  address: row.address,
  reason: row.reason,
  returnCode: row.return_code,
  times: row.times,
  firstAt: row.first_at,
  at: row.at
})

const latestFirst = "ORDER BY at DESC, address, reason"

const make = (sql: Sqlite["Service"]) =>
  ConnectRefusalStore.of({
    add: (refusals) =>
      sql.write("ConnectRefusalStore.add", () => {
        const changed = new Set<string>()
        for (const { address, at, deviceName, firstAt, productKey, reason, returnCode, times } of refusals) {
          const device = sql.get<{ readonly device_id: string }>(
            "SELECT device_id FROM device WHERE product_key = ? AND device_name = ?",
            [productKey, deviceName]
          )
          if (device === undefined) continue
          changed.add(device.device_id)
          sql.run(
            `INSERT INTO connect_refusal AS known (device_id, address, reason, return_code, times, first_at, at)
              VALUES (?, ?, ?, ?, ?, ?, ?)
              ON CONFLICT (device_id, address, reason) DO UPDATE SET
                return_code = excluded.return_code, times = known.times + excluded.times,
                first_at = min(known.first_at, excluded.first_at), at = max(known.at, excluded.at)`,
            [device.device_id, address, reason, returnCode, times, firstAt, at]
          )
        }
        for (const deviceId of changed) {
          sql.run(
            `DELETE FROM connect_refusal WHERE rowid IN (
              SELECT rowid FROM connect_refusal WHERE device_id = ? ${latestFirst} LIMIT -1 OFFSET ?
            )`,
            [deviceId, keptRefusals]
          )
        }
      }),
    of: (deviceId) =>
      sql.read("ConnectRefusalStore.of", () =>
        sql.all<Row>(`SELECT * FROM connect_refusal WHERE device_id = ? ${latestFirst}`, [deviceId]).map(fromRow))
  })
