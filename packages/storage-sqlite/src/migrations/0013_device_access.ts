/**
 * Bindings, refused connections, client certificates and their authorities,
 * remote configurations.
 */
export default `
CREATE TABLE device_binding (
  device_id TEXT PRIMARY KEY REFERENCES device (device_id) ON DELETE CASCADE,
  reported TEXT,
  expected TEXT,
  expected_until INTEGER
) STRICT;

CREATE TABLE connect_refusal (
  device_id TEXT NOT NULL REFERENCES device (device_id) ON DELETE CASCADE,
  address TEXT NOT NULL,
  reason TEXT NOT NULL,
  return_code INTEGER NOT NULL,
  times INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (device_id, address, reason)
) STRICT;

CREATE TABLE certificate_authority (
  seq INTEGER PRIMARY KEY,
  authority_id TEXT NOT NULL UNIQUE,
  project_id TEXT NOT NULL REFERENCES project (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  verification_code TEXT NOT NULL,
  certificate TEXT NOT NULL,
  private_key TEXT,
  fingerprint TEXT NOT NULL,
  subject TEXT NOT NULL,
  not_before INTEGER NOT NULL,
  not_after INTEGER NOT NULL,
  list_issued_at INTEGER,
  list_next_at INTEGER,
  list_size INTEGER,
  created_at INTEGER NOT NULL,
  UNIQUE (project_id, fingerprint)
) STRICT;
CREATE UNIQUE INDEX certificate_authority_own ON certificate_authority (project_id) WHERE kind = 'own';

CREATE TABLE revoked_serial (
  authority_id TEXT NOT NULL REFERENCES certificate_authority (authority_id) ON DELETE CASCADE,
  serial TEXT NOT NULL,
  revoked_at INTEGER NOT NULL,
  PRIMARY KEY (authority_id, serial)
) STRICT, WITHOUT ROWID;

CREATE TABLE device_certificate (
  seq INTEGER PRIMARY KEY,
  fingerprint TEXT NOT NULL UNIQUE,
  serial TEXT NOT NULL,
  device_id TEXT NOT NULL REFERENCES device (device_id) ON DELETE CASCADE,
  authority_id TEXT NOT NULL REFERENCES certificate_authority (authority_id) ON DELETE CASCADE,
  subject TEXT NOT NULL,
  certificate TEXT NOT NULL,
  not_before INTEGER NOT NULL,
  not_after INTEGER NOT NULL,
  ends_at INTEGER,
  revoked_at INTEGER,
  created_at INTEGER NOT NULL,
  UNIQUE (device_id, serial)
) STRICT;
CREATE INDEX device_certificate_authority ON device_certificate (authority_id);

CREATE TABLE configuration (
  configuration_id TEXT PRIMARY KEY,
  product_key TEXT REFERENCES product (product_key) ON DELETE CASCADE,
  device_id TEXT REFERENCES device (device_id) ON DELETE CASCADE,
  version INTEGER NOT NULL,
  format TEXT NOT NULL,
  content TEXT NOT NULL,
  size INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  url TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  CHECK ((product_key IS NULL) <> (device_id IS NULL)),
  UNIQUE (product_key, version),
  UNIQUE (device_id, version)
) STRICT;

-- The configuration may be gone.
CREATE TABLE configuration_progress (
  device_id TEXT PRIMARY KEY REFERENCES device (device_id) ON DELETE CASCADE,
  configuration_id TEXT NOT NULL,
  state TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;
`
