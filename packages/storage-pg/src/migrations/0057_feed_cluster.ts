/**
 * The cluster of PostgreSQL whose transactions number the events of a part: in another
 * one, in which a dump was restored, new events need numbers that this one has not given.
 */
import { statements } from "./statements.ts"

export default statements([
  `ALTER TABLE feed_slot ADD cluster text NOT NULL DEFAULT (pg_control_system()).system_identifier::text`
])
