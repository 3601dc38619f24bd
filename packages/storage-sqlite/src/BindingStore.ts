/**
 * Which devices are bound, on SQLite.
 */
import { type Binding, BindingStore, type DeviceId, unbound } from "@device-cloud/core"
import { Effect, Layer } from "effect"
import { Sqlite } from "./Sqlite.ts"

/** Can be replaced alone. Its rows refer to devices in the same database. */
export const layer: Layer.Layer<BindingStore, never, Sqlite> = Layer.effect(
  BindingStore,
  Effect.map(Sqlite, (sql) => make(sql))
)

interface Row {
  readonly reported: string | null
  readonly expected: string | null
  readonly expected_until: number | null
}

const fromRow = ({ expected, expected_until, reported }: Row): Binding => ({
  reported,
  expected: expected === null ? null : { random: expected, until: expected_until! }
})

const make = (sql: Sqlite["Service"]) => {
  const find = (deviceId: DeviceId): Binding => {
    const row = sql.get<Row>("SELECT reported, expected, expected_until FROM device_binding WHERE device_id = ?", [
      deviceId
    ])
    return row === undefined ? unbound : fromRow(row)
  }

  return BindingStore.of({
    get: (deviceId) => sql.read("BindingStore.get", () => find(deviceId)),
    modify: (deviceId, change) =>
      sql.write("BindingStore.modify", () => {
        const changed = change(find(deviceId))
        if (changed === undefined) return false
        const { expected, reported } = changed
        return sql.run(
          `INSERT INTO device_binding (device_id, reported, expected, expected_until)
            SELECT device_id, ?, ?, ? FROM device WHERE device_id = ?
            ON CONFLICT (device_id) DO UPDATE SET reported = excluded.reported, expected = excluded.expected,
              expected_until = excluded.expected_until`,
          [reported, expected?.random ?? null, expected?.until ?? null, deviceId]
        ) > 0
      })
  })
}
