/**
 * The API as a route of a framework whose routes are functions by method, as in
 * Next.js: `app/openapi/[...path]/route.ts` has this and nothing else.
 */
import { start } from "./cloud.ts"

// One cloud for all requests of the process.
const handler = start().then((cloud) => cloud.fetchHandler())

const handle = async (request: Request): Promise<Response> =>
  (await handler)(request, { address: request.headers.get("x-forwarded-for") ?? "unknown" })

export { handle as DELETE, handle as GET, handle as POST, handle as PUT }
