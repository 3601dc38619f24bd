/**
 * Finds what has ended by its age.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE INDEX command_ended_at ON command (updated_at) WHERE state >= 3`,
  `CREATE INDEX scene_execution_ended_at ON scene_execution (updated_at) WHERE due_at IS NULL`,
  // By creation, which never changes: a task changes with each of its devices.
  `CREATE INDEX job_oldest ON job (created_at)`,
  `CREATE INDEX ota_task_oldest ON ota_task (created_at)`
])
