/**
 * Objects in the database. One that is not whole is an upload that goes on, or one that a crash has ended.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE TABLE object (
    object_id text COLLATE "C" PRIMARY KEY,
    project_id text COLLATE "C" NOT NULL,
    file_name text NOT NULL,
    size bigint NOT NULL,
    md5 text NOT NULL,
    sha256 text NOT NULL,
    is_counted boolean,
    is_whole boolean NOT NULL,
    created_at timestamptz NOT NULL,
    begun_at timestamptz NOT NULL DEFAULT now()
  )`,
  `CREATE INDEX object_begun ON object (begun_at) WHERE NOT is_whole`,
  `CREATE TABLE object_part (
    object_id text COLLATE "C" NOT NULL REFERENCES object ON DELETE CASCADE,
    position int NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (object_id, position)
  )`,
  // PostgreSQL before 16 knows no STORAGE in CREATE TABLE.
  `ALTER TABLE object_part ALTER COLUMN bytes SET STORAGE EXTERNAL`
])
