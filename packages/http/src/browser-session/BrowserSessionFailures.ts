/**
 * Failures of browser sessions.
 */
import { Code } from "../Code.ts"
import { failure } from "../Failure.ts"
import { Unauthorized } from "../project/ProjectFailures.ts"

export const ForgedRequest = failure(
  "ForgedRequest",
  Code.forgedRequest,
  "The request may come from a page of somebody else: X-CSRF-Protection is missing, or Origin is another"
)

/** From the errors of the domain. */
export const browserSessionFailures = {
  UnknownBrowserSession: () => Unauthorized.make({ message: "The browser session has ended; sign in again" })
}
