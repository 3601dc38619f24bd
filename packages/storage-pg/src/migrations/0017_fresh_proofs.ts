/**
 * Proofs of devices are used once: the randoms of messages over HTTP, what their
 * signatures must show, and what is remembered of the gateways of sub-devices.
 */
import { statements } from "./statements.ts"

export default statements([
  `ALTER TABLE product ADD COLUMN uplink_signature text NOT NULL DEFAULT 'any'`,
  `CREATE TABLE uplink_random (
    device_id text COLLATE "C" NOT NULL,
    random text COLLATE "C" NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (device_id, random)
  )`,
  `CREATE INDEX uplink_random_ended ON uplink_random (until)`,
  // The gateway may be gone.
  `CREATE TABLE topology_claim (
    device_id text COLLATE "C" PRIMARY KEY REFERENCES device ON DELETE CASCADE,
    gateway_id text COLLATE "C" NOT NULL,
    state text NOT NULL,
    proved_at timestamptz NOT NULL,
    changed_at timestamptz NOT NULL
  )`,
  `INSERT INTO topology_claim (device_id, gateway_id, state, proved_at, changed_at)
    SELECT device_id, gateway_id, 'held', to_timestamp(0), attached_at FROM sub_device`
])
