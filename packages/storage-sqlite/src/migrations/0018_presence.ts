/**
 * Which devices are online, and who owns them.
 */
export default `
-- Of each device that has had a connection, a sighting or a command. node_id and connection_id: null if it
-- is not connected. online_until: only a sighting keeps it online.
CREATE TABLE presence (
  device_id TEXT PRIMARY KEY REFERENCES device (device_id) ON DELETE CASCADE,
  node_id TEXT,
  connection_id TEXT,
  epoch INTEGER NOT NULL DEFAULT 0,
  last_command INTEGER NOT NULL DEFAULT 0,
  desired_changes INTEGER NOT NULL DEFAULT 0,
  online_until INTEGER
) STRICT;
CREATE INDEX presence_of_node ON presence (node_id, device_id) WHERE node_id IS NOT NULL;
CREATE INDEX presence_ending ON presence (online_until) WHERE online_until IS NOT NULL;

CREATE TABLE node (
  id TEXT PRIMARY KEY,
  heartbeat_at INTEGER NOT NULL,
  steady_since INTEGER NOT NULL
) STRICT;
`
