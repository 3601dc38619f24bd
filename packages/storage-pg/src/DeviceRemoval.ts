/**
 * The one statement that removes devices with everything about them.
 */
import type { SqlClient, Statement } from "effect/sql"

/**
 * Removes the devices for which `which` holds, with their commands; all other rows
 * about them go by their foreign keys. `returning`: columns of `device` and
 * `product`, with `device_id` among them. The names of the devices stay for the
 * feed. Nobody can read the history any more; it goes when history is maintained.
 * The devices are locked first, then their rows in `presence`, their shadows and their
 * tasks of jobs, in the order in which others lock several: a plan may remove the devices
 * in any order.
 */
export const removeDevices = <Row extends object>(
  sql: SqlClient.SqlClient,
  which: Statement.Fragment,
  returning: Statement.Fragment
) =>
  sql<Row>`
    WITH locked AS (
      SELECT device_id FROM device WHERE ${which} ORDER BY device_id FOR UPDATE
    ), present AS (
      SELECT device_id FROM presence WHERE device_id IN (SELECT device_id FROM locked) ORDER BY device_id FOR UPDATE
    ), shadows AS (
      SELECT device_id FROM shadow WHERE device_id IN (SELECT device_id FROM locked)
        AND (SELECT count(*) FROM present) >= 0
      ORDER BY device_id FOR UPDATE
    ), tasks AS (
      SELECT job_id FROM job_task WHERE device_id IN (SELECT device_id FROM locked)
      ORDER BY job_id, device_id FOR UPDATE
    ), removed AS (
      DELETE FROM device USING locked, product
      WHERE device.device_id = locked.device_id AND product.product_key = device.product_key
        -- Known before the first device is removed.
        AND (SELECT count(*) FROM shadows) >= 0 AND (SELECT count(*) FROM tasks) >= 0
      RETURNING device.id AS feed_number, device.project_id AS feed_project, ${returning}
    ), former AS (
      INSERT INTO former_device (id, device_id, project_id, product_key, device_name)
      SELECT feed_number, device_id, feed_project, product_key, device_name FROM removed
    ), commands AS (
      DELETE FROM command WHERE device_id IN (SELECT device_id FROM removed)
    )
    SELECT * FROM removed`
