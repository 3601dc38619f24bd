/**
 * Traces of devices. Each has its last number, so that entries of several nodes become
 * visible in the order of their numbers.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE TABLE device_trace (
    device_id text COLLATE "C" PRIMARY KEY REFERENCES device ON DELETE CASCADE,
    project_id text COLLATE "C" NOT NULL,
    until timestamptz NOT NULL,
    dropped bigint NOT NULL DEFAULT 0,
    last_seq bigint NOT NULL
  )`,
  // JSON, which may have what jsonb cannot hold.
  `CREATE TABLE trace_entry (
    device_id text COLLATE "C" NOT NULL REFERENCES device_trace ON DELETE CASCADE,
    seq bigint NOT NULL,
    entry text NOT NULL,
    PRIMARY KEY (device_id, seq)
  )`
])
