/**
 * Upgrade tasks that devices join later.
 */
import { statements } from "./statements.ts"

export default statements([
  `ALTER TABLE ota_task ADD is_dynamic boolean NOT NULL DEFAULT false`,
  // Asked for each device that reports its version.
  `CREATE INDEX ota_task_dynamic ON ota_task (product_key) WHERE is_dynamic AND status < 2`
])
