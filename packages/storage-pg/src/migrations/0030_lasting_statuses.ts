/**
 * Executions of scenes that wait for the status of a device to last.
 */
import { statements } from "./statements.ts"

export default statements([
  // No foreign keys, so that a change of status is not refused while the scene or
  // the device is being deleted. What is due finds out.
  `CREATE TABLE scene_waiting (
    scene_id text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    minutes integer NOT NULL,
    execution_id text COLLATE "C" NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    event json NOT NULL,
    status text NOT NULL,
    since timestamptz NOT NULL,
    due_at timestamptz NOT NULL,
    PRIMARY KEY (scene_id, device_id, minutes)
  )`,
  `CREATE INDEX scene_waiting_due ON scene_waiting (due_at)`
])
