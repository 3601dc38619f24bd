/**
 * Requests with an idempotency key no longer refer to their project, so that
 * this table can serve projects that live in another database.
 */
import { statements } from "./statements.ts"

export default statements([`ALTER TABLE request DROP CONSTRAINT request_project_id_fkey`])
