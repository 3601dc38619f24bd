/**
 * How far upgrade tasks were over time, and why devices have failed.
 */
export default `
-- The counts of a task at the end of a tick: tens of seconds since 1970.
CREATE TABLE ota_progress (
  task_id INTEGER NOT NULL REFERENCES ota_task (task_id) ON DELETE CASCADE,
  tick INTEGER NOT NULL,
  pending INTEGER NOT NULL,
  upgrading INTEGER NOT NULL,
  succeeded INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  cancelled INTEGER NOT NULL,
  PRIMARY KEY (task_id, tick)
) STRICT, WITHOUT ROWID;

-- Of tasks from before: when their devices have ended.
INSERT INTO ota_progress (task_id, tick, pending, upgrading, succeeded, failed, cancelled)
  WITH change AS (
    SELECT task_id, created_at / 10000 AS tick,
      pending + upgrading + succeeded + failed + cancelled AS pending, 0 AS succeeded, 0 AS failed, 0 AS cancelled
    FROM ota_task
    UNION ALL
    SELECT task_id, updated_at / 10000, -1, status = 'succeeded', status = 'failed', status = 'cancelled'
    FROM ota_record WHERE is_open = 0
  ), changed AS (
    SELECT task_id, tick, sum(pending) AS pending, sum(succeeded) AS succeeded, sum(failed) AS failed,
      sum(cancelled) AS cancelled
    FROM change GROUP BY task_id, tick
  )
  SELECT task_id, tick, sum(pending) OVER earlier, 0, sum(succeeded) OVER earlier, sum(failed) OVER earlier,
    sum(cancelled) OVER earlier
  FROM changed WINDOW earlier AS (PARTITION BY task_id ORDER BY tick);

UPDATE ota_record SET reason = 'the device gave no reason' WHERE status = 'failed' AND reason = '';
CREATE INDEX ota_record_failure ON ota_record (task_id, reason, place) WHERE status = 'failed';
`
