/**
 * Paths as they were sent: a semicolon is part of one, and the router would take
 * it for the end.
 */
import type { HttpServerRequest } from "effect/http"

/** The same request, with semicolons that the router leaves alone. */
export const withLiteralPath = (request: HttpServerRequest.HttpServerRequest): HttpServerRequest.HttpServerRequest => {
  const [path = "", ...query] = request.url.split("?")
  return path.includes(";")
    ? request.modify({ url: [path.replaceAll(";", "%3B"), ...query].join("?") })
    : request
}
