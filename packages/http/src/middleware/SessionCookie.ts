/**
 * The cookie of a browser session (docs/api/browser-sessions.md).
 */
import { Redacted } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { isSecureWay } from "./ClientAddress.ts"

/** Its name where the way to the client is not secure. */
export const plainName = "device-cloud-session"

/** Over TLS, no other host and no page without TLS can set a cookie with this prefix. */
const secureName = `__Host-${plainName}`

const nameFor = (request: HttpServerRequest.HttpServerRequest): string => isSecureWay(request) ? secureName : plainName

/** The token that came with a request; undefined: none. */
export const read = (request: HttpServerRequest.HttpServerRequest): Redacted.Redacted | undefined => {
  const token = request.headers["cookie"] === undefined ? undefined : request.cookies[nameFor(request)]
  return token === undefined ? undefined : Redacted.make(token)
}

const write = (
  request: HttpServerRequest.HttpServerRequest,
  response: HttpServerResponse.HttpServerResponse,
  token: string,
  seconds: number
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.setCookieUnsafe(
    HttpServerResponse.setHeader(response, "cache-control", "no-store"),
    nameFor(request),
    token,
    { path: "/", httpOnly: true, sameSite: "strict", secure: isSecureWay(request), maxAge: seconds * 1000 }
  )

/** Gives the token to the browser for so many seconds. */
export const set = (
  request: HttpServerRequest.HttpServerRequest,
  response: HttpServerResponse.HttpServerResponse,
  token: Redacted.Redacted,
  seconds: number
): HttpServerResponse.HttpServerResponse => write(request, response, Redacted.value(token), seconds)

/** Makes the browser forget the token. */
export const clear = (
  request: HttpServerRequest.HttpServerRequest,
  response: HttpServerResponse.HttpServerResponse
): HttpServerResponse.HttpServerResponse => write(request, response, "", 0)
