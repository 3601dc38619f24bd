/**
 * How many devices there are, by what lists of devices are filtered by most, in
 * blocks of their numbers: a list knows its total and finds a page in the middle
 * without reading what comes before it. Triggers count, once for each statement.
 * Lists are in the order of the numbers.
 */
import { statements } from "./statements.ts"

const columns = "project_id, product_key, block, status, enabled"

/** Rows of a transition table, each with what it adds. */
const rows = (table: string, devices: 1 | -1) =>
  `SELECT project_id, product_key, id >> 14 AS block, status, enabled, ${devices} AS devices FROM ${table}`

/** Sorted, so that statements that run at the same time wait for each other in one order. */
const count = (changed: string) =>
  `INSERT INTO device_count AS counted (${columns}, devices)
    SELECT ${columns}, sum(devices) FROM (${changed}) AS changed
    GROUP BY ${columns} HAVING sum(devices) <> 0 ORDER BY ${columns}
    ON CONFLICT (${columns}) DO UPDATE SET devices = counted.devices + excluded.devices`

const counting = (name: string, event: string, tables: string, changed: string) => [
  `CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      ${count(changed)};
      RETURN NULL;
    END
  $$`,
  `CREATE TRIGGER ${name} AFTER ${event} ON device REFERENCING ${tables}
    FOR EACH STATEMENT EXECUTE FUNCTION ${name}()`
]

export default statements([
  // Nothing is added or removed between the first count and the triggers.
  `LOCK TABLE device IN SHARE ROW EXCLUSIVE MODE`,
  `CREATE TABLE device_count (
    project_id text COLLATE "C" NOT NULL,
    product_key text COLLATE "C" NOT NULL REFERENCES product ON DELETE CASCADE,
    block bigint NOT NULL,
    status text COLLATE "C" NOT NULL,
    enabled boolean NOT NULL,
    devices bigint NOT NULL,
    PRIMARY KEY (${columns})
  ) WITH (fillfactor = 50)`,
  `CREATE INDEX device_count_of_product ON device_count (product_key)`,
  count(rows("device", 1)),
  ...counting("count_new_devices", "INSERT", "NEW TABLE AS added", rows("added", 1)),
  ...counting("count_former_devices", "DELETE", "OLD TABLE AS removed", rows("removed", -1)),
  ...counting(
    "count_changed_devices",
    "UPDATE",
    "OLD TABLE AS removed NEW TABLE AS added",
    `${rows("removed", -1)} UNION ALL ${rows("added", 1)}`
  ),
  ...["", "_of_status", "_of_product", "_of_product_status", "_of_batch", "_disabled"].map((name) =>
    `DROP INDEX device_newest${name}`
  ),
  `CREATE INDEX device_newest ON device (project_id, id)`,
  `CREATE INDEX device_newest_of_status ON device (project_id, status, id)`,
  `CREATE INDEX device_newest_of_product ON device (product_key, id)`,
  `CREATE INDEX device_newest_of_product_status ON device (product_key, status, id)`,
  `CREATE INDEX device_newest_of_batch ON device (batch_id, id) WHERE batch_id <> 0`,
  `CREATE INDEX device_newest_disabled ON device (project_id, id) WHERE NOT enabled`
])
