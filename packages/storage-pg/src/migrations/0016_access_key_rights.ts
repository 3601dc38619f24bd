/**
 * What narrows access keys, who created them, and when they were last used.
 */
import { statements } from "./statements.ts"

export default statements([
  `ALTER TABLE access_key ADD COLUMN products text[], ADD COLUMN actions text[], ADD COLUMN addresses text[],
    ADD COLUMN created_by text COLLATE "C", ADD COLUMN last_used_at timestamptz`,
  `CREATE INDEX access_key_created_by ON access_key (created_by) WHERE created_by IS NOT NULL`
])
