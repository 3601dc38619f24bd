/**
 * Mesh networks and their nodes, the bindings of devices.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE TABLE mesh_network (
    network_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL REFERENCES project ON DELETE CASCADE,
    network_key text COLLATE "C" NOT NULL,
    app_key text NOT NULL,
    unicast_cursor int NOT NULL,
    provisioner_cursor int NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (project_id, network_key)
  )`,
  `CREATE INDEX mesh_network_newest ON mesh_network (project_id, created_at DESC, network_id DESC)`,

  `CREATE TABLE mesh_node (
    node_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    network_id bigint NOT NULL REFERENCES mesh_network ON DELETE CASCADE,
    device_id text COLLATE "C" NOT NULL REFERENCES device ON DELETE CASCADE,
    mesh_addr int NOT NULL,
    node_type smallint NOT NULL,
    created_at timestamptz NOT NULL,
    UNIQUE (network_id, device_id),
    UNIQUE (network_id, mesh_addr)
  )`,
  `CREATE INDEX mesh_node_newest ON mesh_node (network_id, created_at DESC, node_id DESC)`,
  `CREATE INDEX mesh_node_of_device ON mesh_node (device_id)`,
  `CREATE INDEX mesh_node_gateway ON mesh_node (network_id) WHERE node_type = 2`,

  `CREATE TABLE device_binding (
    device_id text COLLATE "C" PRIMARY KEY REFERENCES device ON DELETE CASCADE,
    reported text,
    expected text,
    expected_until timestamptz
  )`
])
