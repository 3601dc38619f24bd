/**
 * Why devices could not connect, on PostgreSQL.
 */
import { type ConnectRefusal, ConnectRefusalStore, keptRefusals, type NewConnectRefusal } from "@device-cloud/core"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { storeError } from "./PgErrors.ts"
import { instants, texts, wholeNumbers } from "./PgParameters.ts"

/** Can be replaced alone. Its rows go with their device. */
export const layer: Layer.Layer<ConnectRefusalStore, never, PgClient.PgClient> = Layer.effect(
  ConnectRefusalStore,
  Effect.map(PgClient.PgClient, (sql) => make(sql))
)

interface Row {
  readonly address: string
  readonly reason: string
  readonly return_code: number
  readonly times: bigint
  readonly first_at: Date
  readonly at: Date
}

const fromRow = (row: Row): ConnectRefusal => ({
  address: row.address,
  reason: row.reason,
  returnCode: row.return_code,
  times: Number(row.times),
  firstAt: row.first_at.getTime(),
  at: row.at.getTime()
})

const make = (sql: PgClient.PgClient) => {
  const insert = (refusals: ReadonlyArray<NewConnectRefusal>) =>
    sql<{ readonly device_id: string }>`
      INSERT INTO connect_refusal AS known (device_id, address, reason, return_code, times, first_at, at)
      SELECT device.device_id, new.address, new.reason, max(new.return_code), sum(new.times), min(new.first_at),
        max(new.at)
      FROM unnest(
        ${texts(refusals.map(({ productKey }) => productKey))},
        ${texts(refusals.map(({ deviceName }) => deviceName))},
        ${texts(refusals.map(({ address }) => address))},
        ${texts(refusals.map(({ reason }) => reason))},
        ${wholeNumbers(refusals.map(({ returnCode }) => returnCode))}::int[],
        ${wholeNumbers(refusals.map(({ times }) => times))},
        ${instants(refusals.map(({ firstAt }) => firstAt))},
        ${instants(refusals.map(({ at }) => at))}
      ) AS new (product_key, device_name, address, reason, return_code, times, first_at, at)
      JOIN device ON device.product_key = new.product_key AND device.device_name = new.device_name
      GROUP BY 1, 2, 3
      -- In one order, so that nodes that store at the same time wait for each other in one direction.
      ORDER BY 1, 2, 3
      ON CONFLICT (device_id, address, reason) DO UPDATE SET
        return_code = excluded.return_code, times = known.times + excluded.times,
        first_at = least(known.first_at, excluded.first_at), at = greatest(known.at, excluded.at)
      RETURNING device_id`

  /** Leaves those that another node has in hand: they have happened again just now. */
  const trim = (deviceIds: ReadonlyArray<string>) =>
    sql`
      DELETE FROM connect_refusal WHERE ctid = ANY(ARRAY(
        SELECT refusal.ctid FROM connect_refusal AS refusal JOIN (
          SELECT device_id, address, reason, row_number() OVER (
            PARTITION BY device_id ORDER BY at DESC, address, reason
          ) AS place
          FROM connect_refusal WHERE device_id = ANY(${texts(deviceIds)})
        ) AS placed USING (device_id, address, reason)
        WHERE place > ${keptRefusals} FOR UPDATE OF refusal SKIP LOCKED
      ))`

  return ConnectRefusalStore.of({
    add: (refusals) =>
      insert(refusals).pipe(
        Effect.flatMap((rows) => trim([...new Set(rows.map(({ device_id }) => device_id))])),
        sql.withTransaction,
        Effect.asVoid,
        Effect.mapError(storeError("ConnectRefusalStore.add"))
      ),
    of: (deviceId) =>
      sql<Row>`SELECT * FROM connect_refusal WHERE device_id = ${deviceId} ORDER BY at DESC, address, reason`.pipe(
        Effect.map((rows) => rows.map(fromRow)),
        Effect.mapError(storeError("ConnectRefusalStore.of"))
      )
  })
}
