/**
 * Shadows and commands.
 */
export default `
CREATE TABLE shadow (
  device_id TEXT PRIMARY KEY REFERENCES device (device_id) ON DELETE CASCADE,
  version INTEGER NOT NULL,
  -- JSON: property to entry.
  reported TEXT NOT NULL,
  desired TEXT NOT NULL,
  updated_at INTEGER
) STRICT;

CREATE TABLE command (
  message_id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id TEXT NOT NULL,
  device_id TEXT NOT NULL REFERENCES device (device_id) ON DELETE CASCADE,
  origin TEXT,
  service_id TEXT,
  user_topic TEXT,
  -- JSON.
  params TEXT NOT NULL,
  synchronous INTEGER NOT NULL,
  state TEXT NOT NULL,
  is_open INTEGER NOT NULL AS (state IN ('queued', 'sent', 'acked')),
  deliveries INTEGER NOT NULL,
  code REAL,
  message TEXT NOT NULL DEFAULT '',
  -- JSON.
  data TEXT NOT NULL DEFAULT '{}',
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX command_of_origin ON command (device_id, origin) WHERE origin IS NOT NULL;
CREATE INDEX command_newest ON command (device_id, created_at, message_id);
CREATE INDEX command_open ON command (device_id, message_id) WHERE is_open;
CREATE INDEX command_expiring ON command (expires_at) WHERE is_open;
CREATE INDEX command_ended ON command (updated_at) WHERE NOT is_open;
`
