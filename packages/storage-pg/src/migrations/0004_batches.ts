/**
 * Batches, indexes for searching devices by tag and name, products of other platforms.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE TABLE device_batch (
    batch_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL,
    product_key text COLLATE "C" NOT NULL REFERENCES product ON DELETE CASCADE,
    size int NOT NULL,
    description text NOT NULL,
    created_at timestamptz NOT NULL
  )`,
  `ALTER TABLE device ALTER tags DROP DEFAULT, ALTER tags TYPE jsonb USING tags::jsonb, ALTER tags SET DEFAULT '{}'`,
  `CREATE INDEX device_by_tag ON device USING gin (tags jsonb_path_ops) WHERE tags <> '{}'`,
  `CREATE INDEX device_by_name ON device (project_id, device_name)`,
  `CREATE INDEX device_by_nickname ON device (project_id, nickname COLLATE "C") WHERE nickname <> ''`,
  `ALTER TABLE product
    ADD platform int NOT NULL DEFAULT 0,
    ADD platform_name text NOT NULL DEFAULT ''`
])
