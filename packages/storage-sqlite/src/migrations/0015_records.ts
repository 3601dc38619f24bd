/**
 * The audit log, requests that may be repeated, used randoms, thing models and
 * codecs, subscriptions, readers of the feed, the health of the file, quotas.
 */
export default `
CREATE TABLE audit_entry (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  project_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  key_name TEXT NOT NULL,
  action TEXT NOT NULL,
  resource_kind TEXT NOT NULL,
  resource_id TEXT NOT NULL,
  address TEXT NOT NULL,
  result INTEGER NOT NULL,
  request_id TEXT NOT NULL
) STRICT;
CREATE INDEX audit_entry_newest ON audit_entry (project_id, at, id);
CREATE INDEX audit_entry_oldest ON audit_entry (at);

-- No foreign key: requests can be kept here without projects.
CREATE TABLE request (
  project_id TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  claimed_at INTEGER NOT NULL,
  -- Null: there is no answer yet.
  status INTEGER,
  body TEXT,
  PRIMARY KEY (project_id, key)
) STRICT;
CREATE INDEX request_oldest ON request (claimed_at);
CREATE TRIGGER requests_of_removed_project AFTER DELETE ON project BEGIN
  DELETE FROM request WHERE project_id = OLD.id;
END;

CREATE TABLE uplink_random (
  device_id TEXT NOT NULL,
  random TEXT NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (device_id, random)
) STRICT;
CREATE INDEX uplink_random_ended ON uplink_random (until);
CREATE INDEX uplink_random_of_device ON uplink_random (device_id, until);

CREATE TABLE thing_model (
  product_key TEXT NOT NULL REFERENCES product (product_key) ON DELETE CASCADE,
  version INTEGER NOT NULL,
  model TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (product_key, version)
) STRICT;

-- description: null if it was removed.
CREATE TABLE product_codec (
  product_key TEXT PRIMARY KEY REFERENCES product (product_key) ON DELETE CASCADE,
  version INTEGER NOT NULL,
  description TEXT,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE subscription (
  subscription_id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id TEXT NOT NULL REFERENCES project (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  filter TEXT NOT NULL,
  webhook TEXT,
  progress TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (project_id, name)
) STRICT;
CREATE INDEX subscription_newest ON subscription (project_id, created_at, subscription_id);
CREATE INDEX subscription_pushing ON subscription (subscription_id) WHERE webhook IS NOT NULL;

CREATE TABLE feed_reader (
  name TEXT PRIMARY KEY,
  place TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  leased_until INTEGER NOT NULL
) STRICT;

-- Whether the file can be written: one row.
CREATE TABLE health (
  number INTEGER PRIMARY KEY,
  written_at INTEGER NOT NULL
) STRICT;

CREATE TABLE project_quota (
  project_id TEXT NOT NULL REFERENCES project (id) ON DELETE CASCADE,
  quota TEXT NOT NULL,
  maximum INTEGER NOT NULL,
  PRIMARY KEY (project_id, quota)
) STRICT;

-- Bytes of objects; all else is counted where it is.
CREATE TABLE project_objects (
  project_id TEXT PRIMARY KEY REFERENCES project (id) ON DELETE CASCADE,
  bytes INTEGER NOT NULL
) STRICT;

CREATE TABLE product_registrations (
  product_key TEXT PRIMARY KEY REFERENCES product (product_key) ON DELETE CASCADE,
  minute INTEGER NOT NULL,
  used INTEGER NOT NULL
) STRICT;
`
