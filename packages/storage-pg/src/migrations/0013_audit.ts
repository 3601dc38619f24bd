/**
 * The audit log. It refers to no other table: entries outlive what they tell of.
 */
import { statements } from "./statements.ts"

export default statements([
  `CREATE TABLE audit_entry (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    project_id text COLLATE "C" NOT NULL,
    key_id text COLLATE "C" NOT NULL,
    key_name text NOT NULL,
    action text COLLATE "C" NOT NULL,
    resource_kind text NOT NULL,
    resource_id text COLLATE "C" NOT NULL,
    address text NOT NULL,
    result int NOT NULL,
    request_id text NOT NULL
  )`,
  // One index for each order in which the API reads the log: of a project, of a
  // key, of an action, of a resource.
  `CREATE INDEX audit_entry_newest ON audit_entry (project_id, at DESC, id DESC)`,
  `CREATE INDEX audit_entry_newest_of_key ON audit_entry (project_id, key_id, at DESC, id DESC)`,
  `CREATE INDEX audit_entry_newest_of_action ON audit_entry (project_id, action, at DESC, id DESC)`,
  `CREATE INDEX audit_entry_newest_of_resource ON audit_entry (project_id, resource_id, at DESC, id DESC)`,
  `CREATE INDEX audit_entry_oldest ON audit_entry (at)`
])
