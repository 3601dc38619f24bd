/**
 * Traces of devices, and their entries.
 */
export default `
CREATE TABLE device_trace (
  device_id TEXT PRIMARY KEY REFERENCES device (device_id) ON DELETE CASCADE,
  project_id TEXT NOT NULL,
  until INTEGER NOT NULL,
  dropped INTEGER NOT NULL DEFAULT 0,
  last_seq INTEGER NOT NULL
) STRICT;

CREATE TABLE trace_entry (
  device_id TEXT NOT NULL REFERENCES device_trace (device_id) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  entry TEXT NOT NULL,
  PRIMARY KEY (device_id, seq)
) STRICT, WITHOUT ROWID;
`
