/**
 * Who owns the connection of a device, apart from the device: connecting writes
 * narrow rows, and the devices of a node are found by index
 * (docs/ownership.md). Takes columns of `device` away.
 */
import { statements } from "./statements.ts"

export default statements([
  // Larger for each later session of a device: it is taken under the lock of the device's row.
  `CREATE SEQUENCE presence_epoch AS bigint`,
  // A row is made when the device first connects, is seen, or gets a command.
  `CREATE TABLE presence (
    device_id text COLLATE "C" PRIMARY KEY REFERENCES device ON DELETE CASCADE,
    node_id text COLLATE "C",
    connection_id text COLLATE "C",
    epoch bigint NOT NULL DEFAULT 0,
    -- The node of the connection that the latest connection has replaced.
    replaced_node_id text COLLATE "C",
    online_until timestamptz,
    last_command bigint NOT NULL DEFAULT 0,
    -- How often what is desired has changed since the row was made.
    desired_changes bigint NOT NULL DEFAULT 0
  ) WITH (fillfactor = 70)`,
  `INSERT INTO presence (device_id, node_id, connection_id, epoch, online_until, last_command)
    SELECT device.device_id, device.node_id, device.connection_id,
      CASE WHEN device.node_id IS NULL THEN 0 ELSE nextval('presence_epoch') END,
      device.online_until, coalesce(command.last, 0)
    FROM device
    LEFT JOIN (SELECT device_id, max(message_id) AS last FROM command GROUP BY device_id) AS command USING (device_id)
    WHERE device.activated_at IS NOT NULL OR command.last IS NOT NULL`,
  `CREATE INDEX presence_of_node ON presence (node_id, device_id) WHERE node_id IS NOT NULL`,
  `CREATE INDEX presence_online_until ON presence (online_until) WHERE online_until IS NOT NULL`,
  // Since when the heartbeats of a node have come without a gap.
  `ALTER TABLE node ADD steady_since timestamptz NOT NULL DEFAULT now()`,
  `ALTER TABLE device DROP connection_id, DROP node_id, DROP online_until`
])
