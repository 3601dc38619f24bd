/**
 * Thing models, commands, the history of devices, tags, replies to requests with an idempotency key.
 */
import { statements } from "./statements.ts"

export default statements([
  `ALTER TABLE device ADD COLUMN tags json NOT NULL DEFAULT '{}'`,

  `CREATE TABLE thing_model (
    product_key text COLLATE "C" NOT NULL REFERENCES product ON DELETE CASCADE,
    version bigint NOT NULL,
    model json NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (product_key, version)
  )`,

  // No foreign keys to devices here: the check of each would lock and rewrite the
  // row of the device. The statement that deletes a device deletes these rows.
  // state: the index in CommandState; below 3 the command has not ended.
  `CREATE TABLE command (
    message_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    service_id text,
    params json NOT NULL,
    state smallint NOT NULL DEFAULT 0,
    code bigint,
    message text NOT NULL DEFAULT '',
    data json NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
  ) WITH (fillfactor = 70)`,
  `CREATE INDEX command_newest ON command (device_id, created_at DESC, message_id DESC)`,
  `CREATE INDEX command_open ON command (device_id, message_id) WHERE state < 3`,
  `CREATE INDEX command_due ON command (expires_at) WHERE state < 3`,

  `CREATE TABLE request (
    project_id text COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
    key text COLLATE "C" NOT NULL,
    fingerprint text NOT NULL,
    claimed_at timestamptz NOT NULL,
    status int,
    body text,
    PRIMARY KEY (project_id, key)
  )`,
  `CREATE INDEX request_claimed ON request (claimed_at)`,

  `CREATE TABLE property_sample (
    id bigint GENERATED ALWAYS AS IDENTITY,
    device_id text COLLATE "C" NOT NULL,
    property_id text COLLATE "C" NOT NULL,
    time timestamptz NOT NULL,
    value json NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT now()
  )`,
  `CREATE INDEX property_sample_by_time ON property_sample (device_id, property_id, time, id)`,
  `CREATE INDEX property_sample_stored ON property_sample USING brin (stored_at)`,

  `CREATE TABLE device_event (
    id bigint GENERATED ALWAYS AS IDENTITY,
    device_id text COLLATE "C" NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    time timestamptz NOT NULL,
    value json NOT NULL,
    stored_at timestamptz NOT NULL DEFAULT now()
  )`,
  `CREATE INDEX device_event_by_time ON device_event (device_id, time, id)`,
  `CREATE INDEX device_event_of_kind_by_time ON device_event (device_id, event_id, time, id)`,
  `CREATE INDEX device_event_stored ON device_event USING brin (stored_at)`
])
