/**
 * A change of status touches no index of `device`: devices of a status are found by
 * short blocks of numbers that have some, which the triggers of migration 0042 count,
 * too (docs/decisions/0128-status-without-indexes.md).
 */
import { statements } from "./statements.ts"

const columns = "project_id, status, block, product_key, enabled"
const longColumns = "project_id, product_key, block, status, enabled"

/** Rows of a transition table, each with what it adds. */
const rows = (table: string, devices: 1 | -1) =>
  `SELECT project_id, product_key, id, status, enabled, ${devices} AS devices FROM ${table}`

/** Sorted, so that statements that run at the same time wait for each other in one order. */
const count = (table: string, key: string, bits: number, changed: string) =>
  `INSERT INTO ${table} AS counted (${key}, devices)
    SELECT ${key}, sum(devices)
    FROM (SELECT project_id, product_key, id >> ${bits} AS block, status, enabled, devices FROM (${changed}) AS row) AS changed
    GROUP BY ${key} HAVING sum(devices) <> 0 ORDER BY ${key}
    ON CONFLICT (${key}) DO UPDATE SET devices = counted.devices + excluded.devices`

const countShort = (changed: string) => count("device_status_block", columns, 7, changed)

/** The long blocks first: whoever changes devices of one waits there. */
const counting = (name: string, changed: string) =>
  `CREATE OR REPLACE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      ${count("device_count", longColumns, 14, changed)};
      ${countShort(changed)};
      RETURN NULL;
    END
  $$`

export default statements([
  // Nothing changes between the first count and the triggers.
  `LOCK TABLE device IN SHARE ROW EXCLUSIVE MODE`,
  `CREATE TABLE device_status_block (
    project_id text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    block bigint NOT NULL,
    product_key text COLLATE "C" NOT NULL REFERENCES product ON DELETE CASCADE,
    enabled boolean NOT NULL,
    devices bigint NOT NULL,
    PRIMARY KEY (${columns})
  ) WITH (fillfactor = 50)`,
  `CREATE INDEX device_status_block_of_product ON device_status_block (product_key)`,
  countShort(rows("device", 1)),
  counting("count_new_devices", rows("added", 1)),
  counting("count_former_devices", rows("removed", -1)),
  counting("count_changed_devices", `${rows("removed", -1)} UNION ALL ${rows("added", 1)}`),
  `DROP INDEX device_newest_of_status`,
  `DROP INDEX device_newest_of_product_status`,
  `CREATE INDEX device_of_block ON device (project_id, (id >> 7))`,
  // Room for the next version of a row beside it.
  `ALTER TABLE device SET (fillfactor = 70)`
])
