/**
 * Projects, access keys, products, devices with their presence, shadows.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE TABLE project (
    id text COLLATE "C" PRIMARY KEY,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,
    created_at timestamptz NOT NULL
  )`,
  `CREATE INDEX project_newest ON project (created_at DESC, seq DESC)`,

  `CREATE TABLE access_key (
    id text COLLATE "C" PRIMARY KEY,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    project_id text COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
    name text NOT NULL,
    role text NOT NULL,
    hash text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz
  )`,
  `CREATE INDEX access_key_newest ON access_key (project_id, created_at DESC, seq DESC)`,
  `CREATE UNIQUE INDEX access_key_owner ON access_key (role) WHERE role = 'owner'`,

  `CREATE TABLE product (
    product_key text COLLATE "C" PRIMARY KEY,
    id bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    project_id text COLLATE "C" NOT NULL REFERENCES project,
    product_secret text NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    photo_url text NOT NULL,
    device_type text NOT NULL,
    node_type text NOT NULL,
    network_type text NOT NULL,
    protocol_type text NOT NULL,
    validate_type text NOT NULL,
    data_format text NOT NULL,
    auth_type text NOT NULL,
    data_source int NOT NULL,
    dynamic_register boolean NOT NULL,
    status text NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
  )`,
  `CREATE INDEX product_newest ON product (project_id, created_at DESC, id DESC)`,

  `CREATE TABLE device (
    device_id text COLLATE "C" PRIMARY KEY,
    id bigint GENERATED ALWAYS AS IDENTITY,
    project_id text COLLATE "C" NOT NULL,
    product_key text COLLATE "C" NOT NULL REFERENCES product,
    device_name text COLLATE "C" NOT NULL,
    device_secret text NOT NULL,
    nickname text NOT NULL,
    enabled boolean NOT NULL DEFAULT true,
    bound boolean NOT NULL DEFAULT false,
    batch_id bigint NOT NULL,
    cloud_gateway json,
    firmware_version text NOT NULL DEFAULT '',
    time_zone text NOT NULL DEFAULT '',
    status text NOT NULL DEFAULT 'unactive',
    status_version bigint NOT NULL DEFAULT 0,
    status_changed_at timestamptz,
    activated_at timestamptz,
    ip text NOT NULL DEFAULT '',
    connection_id text COLLATE "C",
    node_id text COLLATE "C",
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (product_key, device_name)
  ) WITH (fillfactor = 85)`,
  // One index for each order in which the API lists devices: of a project, of a
  // product, of a batch, each also by status, and the disabled ones.
  `CREATE INDEX device_newest ON device (project_id, created_at DESC, id DESC)`,
  `CREATE INDEX device_newest_of_status ON device (project_id, status, created_at DESC, id DESC)`,
  `CREATE INDEX device_newest_of_product ON device (product_key, created_at DESC, id DESC)`,
  `CREATE INDEX device_newest_of_product_status ON device (product_key, status, created_at DESC, id DESC)`,
  `CREATE INDEX device_newest_of_batch ON device (batch_id, created_at DESC, id DESC) WHERE batch_id <> 0`,
  `CREATE INDEX device_newest_disabled ON device (project_id, created_at DESC, id DESC) WHERE NOT enabled`,
  `CREATE INDEX device_of_node ON device (node_id) WHERE node_id IS NOT NULL`,

  `CREATE TABLE node (
    id text COLLATE "C" PRIMARY KEY,
    heartbeat_at timestamptz NOT NULL
  )`,

  // json, not jsonb: it keeps every value that a device may send (jsonb refuses
  // escaped NUL characters and unpaired surrogates).
  `CREATE TABLE shadow (
    device_id text COLLATE "C" PRIMARY KEY REFERENCES device ON DELETE CASCADE,
    version bigint NOT NULL,
    reported json NOT NULL,
    desired json NOT NULL,
    updated_at timestamptz NOT NULL
  ) WITH (fillfactor = 50)`
])
