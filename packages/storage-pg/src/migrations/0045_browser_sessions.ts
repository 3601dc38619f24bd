/**
 * Browsers that are signed in.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE TABLE browser_session (
    hash text COLLATE "C" PRIMARY KEY,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    access_key_id text COLLATE "C" NOT NULL REFERENCES access_key ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
  )`,
  `CREATE INDEX browser_session_of_key ON browser_session (access_key_id, created_at DESC, seq DESC)`,
  `CREATE INDEX browser_session_ending ON browser_session (expires_at)`
])
