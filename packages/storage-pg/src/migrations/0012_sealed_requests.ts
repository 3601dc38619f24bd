/**
 * Requests with an idempotency key keep a hash in place of the request, and their
 * responses sealed. What was kept in plain goes at once: a request from before
 * that comes again is refused until its key is forgotten, within a day.
 */
import { statements } from "./statements.ts"

export default statements([`UPDATE request SET fingerprint = '', body = NULL`])
