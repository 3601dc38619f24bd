/**
 * Devices that register themselves, devices online without a connection, messages on topics of the application.
 */
import { statements } from "./statements.ts"

export default statements([
  `ALTER TABLE device
    ADD mac text COLLATE "C",
    ADD diagnosis_enabled boolean NOT NULL DEFAULT false,
    ADD online_until timestamptz`,
  `CREATE UNIQUE INDEX device_of_mac ON device (product_key, mac) WHERE mac <> ''`,
  `CREATE INDEX device_unregistered ON device (product_key, id) WHERE mac IS NULL AND activated_at IS NULL AND enabled`,
  `CREATE INDEX device_online_until ON device (online_until) WHERE online_until IS NOT NULL`,
  `ALTER TABLE command ADD user_topic text`
])
