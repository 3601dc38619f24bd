/**
 * Paths as they were sent: a semicolon and a hash are part of one, and the router
 * would take them for the end. Of queries, empty parameters are left out: generated clients
 * send them for what they leave out.
 */
import type { HttpServerRequest } from "effect/http"

/** A parameter without a value. A page is a number wherever it is named. */
const isEmpty = (parameter: string): boolean =>
  parameter.indexOf("=") === parameter.length - 1 && parameter !== "" && parameter !== "page=" &&
  parameter !== "page_size="

/** The same request without empty parameters. What devices sign stays as it is. */
export const withoutEmptyParameters = (
  request: HttpServerRequest.HttpServerRequest
): HttpServerRequest.HttpServerRequest => {
  const { url } = request
  const start = url.indexOf("?") + 1
  const mayHave = start > 0 && (url.includes("=&", start) || url.endsWith("="))
  if (!mayHave || url.includes("/thing-uplink?")) return request
  const kept = url.slice(start).split("&").filter((parameter) => !isEmpty(parameter))
  return request.modify({ url: url.slice(0, start) + kept.join("&") })
}

/** The same request, with semicolons and hashes that the router leaves alone. */
export const withLiteralPath = (request: HttpServerRequest.HttpServerRequest): HttpServerRequest.HttpServerRequest => {
  if (!request.url.includes(";") && !request.url.includes("#")) return request
  const [path = "", ...query] = request.url.split("?")
  const literal = path.replaceAll(";", "%3B").replaceAll("#", "%23")
  return literal === path ? request : request.modify({ url: [literal, ...query].join("?") })
}
