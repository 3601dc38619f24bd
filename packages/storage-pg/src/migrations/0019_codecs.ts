/**
 * How the bytes of products stand for messages.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE TABLE product_codec (
    product_key text COLLATE "C" PRIMARY KEY REFERENCES product ON DELETE CASCADE,
    version bigint NOT NULL,
    description json,
    updated_at timestamptz NOT NULL
  )`
])
