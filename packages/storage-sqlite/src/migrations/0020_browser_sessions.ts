/**
 * Browsers that are signed in. Times are Unix milliseconds.
 */
export default `
CREATE TABLE browser_session (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  hash TEXT NOT NULL UNIQUE,
  access_key_id TEXT NOT NULL REFERENCES access_key (id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX browser_session_of_key ON browser_session (access_key_id, created_at, seq);
CREATE INDEX browser_session_ending ON browser_session (expires_at);
`
