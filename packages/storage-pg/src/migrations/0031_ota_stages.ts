/**
 * SHA-256 of firmware; the stages and windows of upgrade tasks.
 */
import { statements } from "./statements.ts"

export default statements([
  `ALTER TABLE firmware ADD sha256 text NOT NULL DEFAULT ''`,
  `ALTER TABLE ota_task ADD stages json NOT NULL DEFAULT '[]', ADD stage int NOT NULL DEFAULT 1,
    ADD stage_success_percent int NOT NULL DEFAULT 0, ADD start_window json`,
  `ALTER TABLE ota_record ADD is_held boolean NOT NULL DEFAULT false`
])
