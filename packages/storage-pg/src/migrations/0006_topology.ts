/**
 * Sub-devices of gateways, and the sessions in which a gateway adds them.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE TABLE sub_device (
    device_id text COLLATE "C" PRIMARY KEY REFERENCES device ON DELETE CASCADE,
    gateway_id text COLLATE "C" NOT NULL REFERENCES device ON DELETE CASCADE,
    position bigint GENERATED ALWAYS AS IDENTITY,
    attached_at timestamptz NOT NULL
  )`,
  `CREATE INDEX sub_device_of_gateway ON sub_device (gateway_id, position)`,

  `CREATE TABLE add_session (
    session_id text COLLATE "C" PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL,
    gateway_id text COLLATE "C" NOT NULL REFERENCES device ON DELETE CASCADE,
    product_keys text[] NOT NULL,
    started_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    ended_at timestamptz
  )`,
  `CREATE UNIQUE INDEX add_session_open ON add_session (gateway_id) WHERE ended_at IS NULL`,
  `CREATE INDEX add_session_due ON add_session (ends_at) WHERE ended_at IS NULL`,
  `CREATE INDEX add_session_ended ON add_session (ended_at) WHERE ended_at IS NOT NULL`,
  `CREATE INDEX add_session_of_gateway ON add_session (gateway_id)`,

  `CREATE TABLE add_session_member (
    session_id text COLLATE "C" NOT NULL REFERENCES add_session ON DELETE CASCADE,
    device_id text COLLATE "C" NOT NULL REFERENCES device ON DELETE CASCADE,
    position bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (session_id, device_id)
  )`,
  `CREATE INDEX add_session_member_device ON add_session_member (device_id)`
])
