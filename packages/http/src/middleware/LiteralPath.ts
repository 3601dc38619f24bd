/**
 * Paths as they were sent: a semicolon and a hash are part of one, and the router
 * would take them for the end. Of queries, empty parameters are left out: generated clients
 * send them for what they leave out.
 */
import type { HttpServerRequest } from "effect/http"

/** Parameters without a value. A page is a number wherever it is named. */
const emptyParameters = /(?<=[?&])(?!page=|page_size=)[^=&]*=(?:&|$)/g

/** The same request without empty parameters. What devices sign stays as it is. */
export const withoutEmptyParameters = (
  request: HttpServerRequest.HttpServerRequest
): HttpServerRequest.HttpServerRequest =>
  (request.url.includes("=&") || request.url.endsWith("=")) && !request.url.includes("/thing-uplink?")
    ? request.modify({ url: request.url.replace(emptyParameters, "") })
    : request

/** The same request, with semicolons and hashes that the router leaves alone. */
export const withLiteralPath = (request: HttpServerRequest.HttpServerRequest): HttpServerRequest.HttpServerRequest => {
  if (!request.url.includes(";") && !request.url.includes("#")) return request
  const [path = "", ...query] = request.url.split("?")
  const literal = path.replaceAll(";", "%3B").replaceAll("#", "%23")
  return literal === path ? request : request.modify({ url: [literal, ...query].join("?") })
}
