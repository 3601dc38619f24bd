/**
 * How far upgrade tasks were over time, and why devices have failed.
 */
import { statements } from "./statements.ts"

export default statements([
  // The counts of a task at the end of a tick: tens of seconds since 1970.
  `CREATE TABLE ota_progress (
    task_id bigint NOT NULL REFERENCES ota_task ON DELETE CASCADE,
    tick int NOT NULL,
    pending int NOT NULL,
    upgrading int NOT NULL,
    succeeded int NOT NULL,
    failed int NOT NULL,
    cancelled int NOT NULL,
    PRIMARY KEY (task_id, tick)
  ) WITH (fillfactor = 70)`,
  // Of tasks from before: when their devices have ended.
  `INSERT INTO ota_progress (task_id, tick, pending, upgrading, succeeded, failed, cancelled)
    WITH change AS (
      SELECT task_id, floor(extract(epoch FROM created_at) / 10)::int AS tick,
        pending + upgrading + succeeded + failed + cancelled AS pending, 0 AS succeeded, 0 AS failed, 0 AS cancelled
      FROM ota_task
      UNION ALL
      SELECT task_id, floor(extract(epoch FROM updated_at) / 10)::int, -1, (status = 3)::int, (status = 4)::int,
        (status = 5)::int
      FROM ota_record WHERE status >= 3
    ), changed AS (
      SELECT task_id, tick, sum(pending) AS pending, sum(succeeded) AS succeeded, sum(failed) AS failed,
        sum(cancelled) AS cancelled
      FROM change GROUP BY task_id, tick
    )
    SELECT task_id, tick, sum(pending) OVER earlier, 0, sum(succeeded) OVER earlier, sum(failed) OVER earlier,
      sum(cancelled) OVER earlier
    FROM changed WINDOW earlier AS (PARTITION BY task_id ORDER BY tick)`,
  `UPDATE ota_record SET reason = 'the device gave no reason' WHERE status = 4 AND reason = ''`,
  // Changes only with the status: PostgreSQL touches no index while devices report their steps.
  `ALTER TABLE ota_record ADD failure text COLLATE "C"
    GENERATED ALWAYS AS (CASE WHEN status = 4 THEN reason END) STORED`,
  `CREATE INDEX ota_record_failure ON ota_record (task_id, failure, place) WHERE failure IS NOT NULL`
])
