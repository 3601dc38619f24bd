/**
 * What a command writes: one index of commands in place of two, and the indexes of
 * the audit log in the order in which entries come
 * (docs/decisions/0126-what-a-command-writes.md).
 */
import { statements } from "./statements.ts"

/** Replaces an index of the audit log; it is read backwards. */
const ascending = (name: string, columns: string) => [
  `DROP INDEX ${name}`,
  `CREATE INDEX ${name} ON audit_entry (${columns}, at, id)`
]

export default statements([
  `DROP INDEX command_newest`,
  `ALTER TABLE command DROP CONSTRAINT command_pkey, ADD PRIMARY KEY (device_id, message_id)`,
  ...ascending("audit_entry_newest", "project_id"),
  ...ascending("audit_entry_newest_of_key", "project_id, key_id"),
  ...ascending("audit_entry_newest_of_action", "project_id, action"),
  ...ascending("audit_entry_newest_of_resource", "project_id, resource_id")
])
