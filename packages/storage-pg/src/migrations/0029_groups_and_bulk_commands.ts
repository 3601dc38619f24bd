/**
 * The order of batches in lists; groups of devices, which count as quotas do
 * (migration 0014); bulk commands.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE INDEX device_batch_newest ON device_batch (product_key, created_at DESC, batch_id DESC)`,

  // query: null for a static group.
  `CREATE TABLE device_group (
    group_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
    name text COLLATE "C" NOT NULL,
    description text NOT NULL,
    query json,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (project_id, name)
  )`,
  `CREATE INDEX device_group_newest ON device_group (project_id, created_at DESC, group_id DESC)`,
  `CREATE TABLE device_group_member (
    group_id bigint NOT NULL REFERENCES device_group ON DELETE CASCADE,
    device_id text COLLATE "C" NOT NULL REFERENCES device ON DELETE CASCADE,
    PRIMARY KEY (group_id, device_id)
  )`,
  `CREATE INDEX device_group_member_of_device ON device_group_member (device_id)`,
  `CREATE TRIGGER count_added AFTER INSERT ON device_group REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_added('deviceGroups')`,
  `CREATE TRIGGER count_removed AFTER DELETE ON device_group REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_removed('deviceGroups')`,

  // turns: devices to ask, and commands to cancel.
  `CREATE TABLE bulk_command (
    bulk_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
    service_id text,
    params json NOT NULL,
    ttl int NOT NULL,
    is_cancelled boolean NOT NULL DEFAULT false,
    total int NOT NULL,
    turns int NOT NULL,
    served_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
  )`,
  `CREATE INDEX bulk_command_newest ON bulk_command (project_id, created_at DESC, bulk_id DESC)`,
  `CREATE INDEX bulk_command_waiting ON bulk_command (served_at) WHERE turns > 0`,
  `CREATE INDEX bulk_command_ended ON bulk_command (updated_at) WHERE turns = 0`,
  // No foreign key to devices: those that are removed stay in the list.
  // state: 0 to ask, 1 has its command, 2 refused, 3 not asked any more, 4 its command is to be cancelled.
  `CREATE TABLE bulk_command_device (
    bulk_id bigint NOT NULL REFERENCES bulk_command ON DELETE CASCADE,
    place int NOT NULL,
    device_id text COLLATE "C" NOT NULL,
    device_name text COLLATE "C" NOT NULL,
    state smallint NOT NULL DEFAULT 0,
    claimed_until timestamptz,
    message_id bigint,
    reason text NOT NULL DEFAULT '',
    PRIMARY KEY (bulk_id, place)
  ) WITH (fillfactor = 70)`,
  `CREATE INDEX bulk_command_device_waiting ON bulk_command_device (bulk_id, place) WHERE state IN (0, 4)`
])
