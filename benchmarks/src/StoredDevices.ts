/**
 * Devices that are merely stored: rows like that of a device that there is.
 */
import type { Query } from "./Database.ts"

const atOnce = 100_000

/** Stores devices of the product of device `like`, and nothing else of them. */
export const storeDevices = async (query: Query, like: string, count: number): Promise<void> => {
  for (let from = 0; from < count; from += atOnce) {
    await query(
      `INSERT INTO device (project_id, product_key, device_id, device_name, device_secret, sealed_with, nickname, batch_id,
        created_at, updated_at)
      SELECT project_id, product_key, 'stored' || i, 'stored' || i, device_secret, sealed_with, '', 0, now(), now()
      FROM device, generate_series($2::int, $3::int - 1) AS i WHERE device_id = $1`,
      [like, from, Math.min(from + atOnce, count)]
    )
  }
  await query("VACUUM ANALYZE device")
}

/** Connects the first of those devices to a node that has just said that it lives, and dies: its connection ends. */
export const connectToDyingNode = async (query: Query, count: number): Promise<void> => {
  await query(
    `UPDATE device SET status = 'online', status_version = status_version + 1, activated_at = now(),
      status_changed_at = now() WHERE device_id IN (SELECT 'stored' || i FROM generate_series(0, $1::int - 1) AS i)`,
    [count]
  )
  await query(
    `INSERT INTO presence (device_id, node_id, connection_id, epoch)
      SELECT 'stored' || i, 'dying', 'of-stored' || i, nextval('presence_epoch')
      FROM generate_series(0, $1::int - 1) AS i
      ON CONFLICT (device_id) DO UPDATE SET node_id = excluded.node_id, connection_id = excluded.connection_id,
        epoch = excluded.epoch`,
    [count]
  )
  await query("VACUUM ANALYZE device, presence")
  await query(`INSERT INTO node (id, heartbeat_at, backend) VALUES ('dying', clock_timestamp(), pg_backend_pid())
    ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, backend = excluded.backend`)
}

/** How many devices the dead node still holds. */
export const heldByDeadNode = async (query: Query): Promise<number> => {
  const [row] = await query("SELECT count(*)::int AS held FROM presence WHERE node_id = 'dying'")
  return Number(row!["held"])
}
