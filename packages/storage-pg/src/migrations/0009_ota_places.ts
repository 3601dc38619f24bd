/**
 * A place for each record of a task, so that all pages cost the same; downloads over MQTT.
 */
import { statements } from "./statements.ts"

export default statements([
  `ALTER TABLE ota_task ADD download_protocol text NOT NULL DEFAULT 'https'`,
  // Which firmware has a task that has not ended, and its newest verify task.
  `CREATE INDEX ota_task_unfinished ON ota_task (firmware_id) WHERE status < 2`,
  `CREATE INDEX ota_task_verify ON ota_task (firmware_id, task_id) WHERE kind = 'verify'`,
  // 0 and up in each task, without gaps.
  `ALTER TABLE ota_record ADD place int`,
  `UPDATE ota_record SET place = rank.place
    FROM (
      SELECT task_id, device_id, row_number() OVER (PARTITION BY task_id ORDER BY created_at, device_id) - 1 AS place
      FROM ota_record
    ) AS rank
    WHERE ota_record.task_id = rank.task_id AND ota_record.device_id = rank.device_id`,
  `ALTER TABLE ota_record ALTER place SET NOT NULL`,
  `DROP INDEX ota_record_newest`,
  `CREATE INDEX ota_record_place ON ota_record (task_id, place)`
])
