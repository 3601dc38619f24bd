/**
 * The keys that sign the firmware of products, and the signatures of firmware.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE TABLE firmware_key (
    product_key text COLLATE "C" PRIMARY KEY REFERENCES product ON DELETE CASCADE,
    key_id text NOT NULL,
    algorithm text NOT NULL,
    public_key text NOT NULL,
    created_at timestamptz NOT NULL
  )`,
  `ALTER TABLE firmware ADD signature text NOT NULL DEFAULT '', ADD signing_key_id text NOT NULL DEFAULT '',
    ADD signing_algorithm text NOT NULL DEFAULT ''`
])
