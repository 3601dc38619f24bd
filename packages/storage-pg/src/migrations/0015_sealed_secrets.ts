/**
 * Sealed secrets: the data keys, and in each table with secrets the number of the
 * data key that seals the row, 0 for a row that is not sealed yet. Devices and
 * products keep the secret before the current one; the password of a cloud gateway
 * gets a column of its own. Sealed network keys are found
 * by a fingerprint.
 */
import { statements } from "./statements.ts"

const sealed = ["device", "product", "mesh_network", "webhook_key"]

export default statements([
  `CREATE TABLE data_key (
    number int PRIMARY KEY,
    made_under text NOT NULL,
    master_key text NOT NULL,
    sealed text NOT NULL,
    created_at timestamptz NOT NULL
  )`,
  ...sealed.flatMap((table) => [
    `ALTER TABLE ${table} ADD COLUMN sealed_with int NOT NULL DEFAULT 0`,
    `CREATE INDEX ${table}_sealed_with ON ${table} (sealed_with)`
  ]),
  `ALTER TABLE device ADD COLUMN previous_secret text, ADD COLUMN previous_secret_until timestamptz,
    ADD COLUMN cloud_gateway_password text`,
  `ALTER TABLE product ADD COLUMN previous_secret text, ADD COLUMN previous_secret_until timestamptz`,
  `ALTER TABLE mesh_network ADD COLUMN fingerprint text COLLATE "C"`,
  `CREATE UNIQUE INDEX mesh_network_fingerprint ON mesh_network (project_id, fingerprint)`
])
