/**
 * Sub-devices of gateways, the sessions in which gateways add them, mesh networks.
 */
export default `
CREATE TABLE sub_device (
  position INTEGER PRIMARY KEY,
  device_id TEXT NOT NULL UNIQUE REFERENCES device (device_id) ON DELETE CASCADE,
  gateway_id TEXT NOT NULL REFERENCES device (device_id) ON DELETE CASCADE
) STRICT;
CREATE INDEX sub_device_of_gateway ON sub_device (gateway_id, position);

-- The gateway may be gone.
CREATE TABLE topology_claim (
  device_id TEXT PRIMARY KEY REFERENCES device (device_id) ON DELETE CASCADE,
  gateway_id TEXT NOT NULL,
  state TEXT NOT NULL,
  proved_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
) STRICT;

CREATE TABLE add_session (
  session_id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL,
  gateway_id TEXT NOT NULL REFERENCES device (device_id) ON DELETE CASCADE,
  product_keys TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ends_at INTEGER NOT NULL,
  ended_at INTEGER
) STRICT;
CREATE UNIQUE INDEX add_session_open ON add_session (gateway_id) WHERE ended_at IS NULL;
CREATE INDEX add_session_due ON add_session (ends_at) WHERE ended_at IS NULL;
CREATE INDEX add_session_ended ON add_session (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX add_session_of_gateway ON add_session (gateway_id);

CREATE TABLE add_session_member (
  position INTEGER PRIMARY KEY,
  session_id TEXT NOT NULL REFERENCES add_session (session_id) ON DELETE CASCADE,
  device_id TEXT NOT NULL REFERENCES device (device_id) ON DELETE CASCADE,
  UNIQUE (session_id, device_id)
) STRICT;
CREATE INDEX add_session_member_device ON add_session_member (device_id);

CREATE TABLE mesh_network (
  network_id INTEGER PRIMARY KEY AUTOINCREMENT,
  project_id TEXT NOT NULL REFERENCES project (id) ON DELETE CASCADE,
  -- By which the network of a key is found.
  fingerprint TEXT NOT NULL,
  network_key TEXT NOT NULL,
  app_key TEXT NOT NULL,
  unicast_cursor INTEGER NOT NULL,
  provisioner_cursor INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (project_id, fingerprint)
) STRICT;
CREATE INDEX mesh_network_newest ON mesh_network (project_id, created_at, network_id);

CREATE TABLE mesh_node (
  node_id INTEGER PRIMARY KEY,
  network_id INTEGER NOT NULL REFERENCES mesh_network (network_id) ON DELETE CASCADE,
  device_id TEXT NOT NULL REFERENCES device (device_id) ON DELETE CASCADE,
  mesh_addr INTEGER NOT NULL,
  node_type INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (network_id, device_id),
  UNIQUE (network_id, mesh_addr)
) STRICT;
CREATE INDEX mesh_node_newest ON mesh_node (network_id, created_at, node_id);
CREATE INDEX mesh_node_of_device ON mesh_node (device_id);
`
