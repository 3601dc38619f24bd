/**
 * Which devices are bound, on PostgreSQL.
 */
import { type Binding, BindingStore, type DeviceId, unbound } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { isForeignKeyViolation, storeError } from "./PgErrors.ts"
import { instant } from "./PgParameters.ts"

/** Can be replaced alone. Its rows refer to devices in the same database. */
export const layer: Layer.Layer<BindingStore, never, PgClient.PgClient> = Layer.effect(
  BindingStore,
  Effect.map(PgClient.PgClient, (sql) => make(sql))
)

interface Row {
  readonly reported: string | null
  readonly expected: string | null
  readonly expected_until: Date | null
}

const fromRow = ({ expected, expected_until, reported }: Row): Binding => ({
  reported,
  expected: expected === null ? null : { random: expected, until: expected_until!.getTime() }
})

const make = (sql: PgClient.PgClient) => {
  const modify = Effect.fnUntraced(
    function*(deviceId: DeviceId, change: (binding: Binding) => Binding | undefined) {
      // Makes sure that there is a row to lock.
      yield* sql`INSERT INTO device_binding (device_id) VALUES (${deviceId}) ON CONFLICT DO NOTHING`
      const [row] = yield* sql<Row>`SELECT reported, expected, expected_until FROM device_binding
        WHERE device_id = ${deviceId} FOR UPDATE`
      const changed = row === undefined ? undefined : change(fromRow(row))
      if (changed === undefined) return false
      yield* sql`UPDATE device_binding SET reported = ${changed.reported}, expected = ${
        changed.expected?.random ?? null
      }, expected_until = ${instant(changed.expected?.until ?? null)} WHERE device_id = ${deviceId}`
      return true
    },
    sql.withTransaction,
    Effect.catchIf(isForeignKeyViolation, () => Effect.succeed(false))
  )

  return BindingStore.of({
    get: (deviceId) =>
      sql<Row>`SELECT reported, expected, expected_until FROM device_binding WHERE device_id = ${deviceId}`.pipe(
        Effect.map(([row]) => row === undefined ? unbound : fromRow(row)),
        Effect.mapError(storeError("BindingStore.get"))
      ),
    modify: (deviceId, change) => Effect.mapError(modify(deviceId, change), storeError("BindingStore.modify"))
  })
}
