/**
 * From the requests of `node:http`, which express and fastify have, to those of
 * `fetch`, and back. The body of a request must not have been read before.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import type { ReadableStream } from "node:stream/web"
import type { ApiHandler } from "./cloud.ts"

/** Responds to a request of `node:http` with the API. `url` is the whole path, with what a router has cut off. */
export const respond = async (
  handle: ApiHandler,
  request: IncomingMessage,
  response: ServerResponse,
  url: string
): Promise<void> => {
  // What is no request of `fetch`.
  if (request.method === "TRACE") return void response.writeHead(405).end()
  // The header `Host` says which host alone, never a path, so that no route is reached that is not mounted.
  const address = new URL(`http://localhost${url}`)
  address.host = request.headers.host ?? ""
  // Neither does `/openapi/../metrics` reach one.
  if (address.pathname.split("/")[1] !== url.split("/")[1]) return void response.writeHead(404).end()
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(request.headersDistinct)) {
    for (const value of values) headers.append(name, value)
  }
  const hasBody = request.method !== "GET" && request.method !== "HEAD"
  const reply = await handle(
    new Request(address, {
      method: request.method ?? "GET",
      headers,
      ...hasBody ? { body: Readable.toWeb(request) as BodyInit, duplex: "half" } : {}
    }),
    // Limits count by address. Behind a proxy, pass on the address that the proxy has seen.
    { address: request.socket.remoteAddress ?? "unknown" }
  )
  // No other request can come behind a body that nobody reads.
  if (!request.complete) response.setHeader("Connection", "close")
  response.writeHead(reply.status, Object.fromEntries(reply.headers))
  if (reply.body === null) return void response.end()
  try {
    await pipeline(Readable.fromWeb(reply.body as ReadableStream), response)
  } catch (error) {
    // A client that leaves before the end, such as one of `GET /events`, is no failure.
    if ((error as NodeJS.ErrnoException).code !== "ERR_STREAM_PREMATURE_CLOSE") throw error
  }
}
