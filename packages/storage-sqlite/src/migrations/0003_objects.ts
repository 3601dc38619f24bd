/**
 * Objects in the database. One that is not whole is an upload that goes on, or one
 * that the end of a process has ended.
 */
export default `
CREATE TABLE object (
  number INTEGER PRIMARY KEY,
  object_id TEXT NOT NULL UNIQUE,
  project_id TEXT NOT NULL,
  file_name TEXT NOT NULL,
  size INTEGER NOT NULL,
  md5 TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  is_counted INTEGER,
  is_whole INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX object_begun ON object (number) WHERE NOT is_whole;

CREATE TABLE object_part (
  object INTEGER NOT NULL REFERENCES object (number) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (object, position)
) STRICT;
`
