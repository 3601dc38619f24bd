/**
 * Projects, access keys, products, devices, and the keys that seal their secrets.
 * Times are Unix milliseconds.
 */
export default `
CREATE TABLE data_key (
  number INTEGER PRIMARY KEY,
  master_key TEXT NOT NULL,
  sealed TEXT NOT NULL
) STRICT;

CREATE TABLE project (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX project_newest ON project (created_at, seq);

CREATE TABLE access_key (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  project_id TEXT NOT NULL REFERENCES project (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  -- JSON: lists of texts.
  products TEXT,
  actions TEXT,
  addresses TEXT,
  created_by TEXT,
  last_used_at INTEGER
) STRICT;
CREATE INDEX access_key_newest ON access_key (project_id, created_at, seq);
CREATE INDEX access_key_of_creator ON access_key (created_by) WHERE created_by IS NOT NULL;

CREATE TABLE product (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  product_key TEXT NOT NULL UNIQUE,
  project_id TEXT NOT NULL REFERENCES project (id),
  product_secret TEXT NOT NULL,
  previous_secret TEXT,
  previous_secret_until INTEGER,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  photo_url TEXT NOT NULL,
  device_type TEXT NOT NULL,
  node_type TEXT NOT NULL,
  network_type TEXT NOT NULL,
  protocol_type TEXT NOT NULL,
  validate_type TEXT NOT NULL,
  data_format TEXT NOT NULL,
  auth_type TEXT NOT NULL,
  uplink_signature TEXT NOT NULL,
  data_source INTEGER NOT NULL,
  platform INTEGER NOT NULL,
  platform_name TEXT NOT NULL,
  dynamic_register INTEGER NOT NULL,
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX product_newest ON product (project_id, created_at, id);

CREATE TABLE device_batch (
  batch_id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id TEXT NOT NULL,
  product_key TEXT NOT NULL REFERENCES product (product_key) ON DELETE CASCADE,
  size INTEGER NOT NULL,
  description TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX device_batch_newest ON device_batch (product_key, created_at, batch_id);

CREATE TABLE device (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  device_id TEXT NOT NULL UNIQUE,
  project_id TEXT NOT NULL,
  product_key TEXT NOT NULL REFERENCES product (product_key),
  device_name TEXT NOT NULL,
  device_secret TEXT NOT NULL,
  previous_secret TEXT,
  previous_secret_until INTEGER,
  nickname TEXT NOT NULL,
  enabled INTEGER NOT NULL DEFAULT 1,
  bound INTEGER NOT NULL DEFAULT 0,
  batch_id INTEGER NOT NULL,
  -- JSON, without the password.
  cloud_gateway TEXT,
  cloud_gateway_password TEXT,
  mac TEXT,
  diagnosis_enabled INTEGER NOT NULL DEFAULT 0,
  -- JSON: key to value.
  tags TEXT NOT NULL DEFAULT '{}',
  firmware_version TEXT NOT NULL DEFAULT '',
  time_zone TEXT NOT NULL DEFAULT '',
  status TEXT NOT NULL DEFAULT 'unactive',
  status_version INTEGER NOT NULL DEFAULT 0,
  status_changed_at INTEGER,
  activated_at INTEGER,
  ip TEXT NOT NULL DEFAULT '',
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (product_key, device_name)
) STRICT;
CREATE INDEX device_newest ON device (project_id, id);
CREATE INDEX device_newest_of_status ON device (project_id, status, id);
CREATE INDEX device_newest_of_product ON device (product_key, id);
CREATE INDEX device_newest_of_batch ON device (batch_id, id) WHERE batch_id <> 0;
CREATE UNIQUE INDEX device_of_mac ON device (product_key, mac) WHERE mac <> '';
CREATE INDEX device_unregistered ON device (product_key, id)
  WHERE mac IS NULL AND activated_at IS NULL AND enabled;
`
