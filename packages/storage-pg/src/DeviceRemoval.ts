/**
 * The one statement that removes devices with everything about them.
 */
import type { SqlClient, Statement } from "effect/sql"

/**
 * Removes the devices for which `which` holds, with their commands and history;
 * all other rows about them go by their foreign keys. `returning`: columns of
 * `device` and `product`, with `device_id` among them.
 */
export const removeDevices = <Row extends object>(
  sql: SqlClient.SqlClient,
  which: Statement.Fragment,
  returning: Statement.Fragment
) =>
  sql<Row>`
    WITH removed AS (
      DELETE FROM device USING product
      WHERE product.product_key = device.product_key AND ${which}
      RETURNING ${returning}
    ), commands AS (
      DELETE FROM command WHERE device_id IN (SELECT device_id FROM removed)
    ), samples AS (
      DELETE FROM property_sample WHERE device_id IN (SELECT device_id FROM removed)
    ), events AS (
      DELETE FROM device_event WHERE device_id IN (SELECT device_id FROM removed)
    )
    SELECT * FROM removed`
