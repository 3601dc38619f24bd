/**
 * Timers of scenes have time zones of their own, and what CONNECTs of devices
 * were refused for is kept.
 */
import { statements } from "./statements.ts"

export default statements([
  `ALTER TABLE scene_timer ADD COLUMN time_zone text`,
  // Few rows for each device: those that are equal are counted, and the oldest go.
  `CREATE TABLE connect_refusal (
    device_id text COLLATE "C" NOT NULL REFERENCES device ON DELETE CASCADE,
    address text COLLATE "C" NOT NULL,
    reason text COLLATE "C" NOT NULL,
    return_code int NOT NULL,
    times bigint NOT NULL,
    first_at timestamptz NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (device_id, address, reason)
  )`
])
