/**
 * Remote configurations of products and devices, and what devices know of them.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE TABLE configuration (
    configuration_id text COLLATE "C" PRIMARY KEY,
    product_key text COLLATE "C" REFERENCES product ON DELETE CASCADE,
    device_id text COLLATE "C" REFERENCES device ON DELETE CASCADE,
    version bigint NOT NULL,
    format text NOT NULL,
    content text NOT NULL,
    size int NOT NULL,
    sha256 text NOT NULL,
    url text NOT NULL,
    created_at timestamptz NOT NULL,
    CHECK ((product_key IS NULL) <> (device_id IS NULL)),
    UNIQUE (product_key, version),
    UNIQUE (device_id, version)
  )`,
  // The configuration may be gone.
  `CREATE TABLE configuration_progress (
    device_id text COLLATE "C" PRIMARY KEY REFERENCES device ON DELETE CASCADE,
    configuration_id text COLLATE "C" NOT NULL,
    state text NOT NULL,
    at timestamptz NOT NULL
  )`
])
