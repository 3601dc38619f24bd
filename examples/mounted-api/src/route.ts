/**
 * The API as a route of a framework whose routes are functions by method, as in
 * Next.js: `app/openapi/[...path]/route.ts` and `app/objects/[...path]/route.ts`
 * have this and nothing else.
 */
import { type ApiHandler, start } from "./cloud.ts"

// One cloud for all requests of the process: Next.js evaluates a module once for each
// route, `next dev` again after a change, and `next build` without any request.
const shared = globalThis as typeof globalThis & { deviceCloudApi?: Promise<ApiHandler> }
const handler = () => shared.deviceCloudApi ??= start().then((cloud) => cloud.fetchHandler())

/** What the proxy in front has seen. What stands before it is only what the client says. */
const addressOf = ({ headers }: Request): string =>
  headers.get("x-forwarded-for")?.split(",").at(-1)?.trim() ?? "unknown"

const handle = async (request: Request): Promise<Response> =>
  (await handler())(request, { address: addressOf(request) })

export { handle as DELETE, handle as GET, handle as POST, handle as PUT }
