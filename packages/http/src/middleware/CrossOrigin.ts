/**
 * Lets pages of other origins call the API from a browser (CORS), with an access
 * key in a header. Credentials are not allowed, nor the header that requests with a
 * cookie need: the session of a browser is for pages of this server only.
 */
import { type HttpServerRequest, HttpServerResponse } from "effect/http"

/** Seconds for which a browser remembers what it may send. */
const maxAge = "600"

const preflightHeaders = {
  "access-control-allow-methods": "GET, HEAD, POST, PUT, DELETE",
  "access-control-allow-headers": "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Request-Id",
  "access-control-max-age": maxAge
}

const exposed = "X-Request-Id, Retry-After, Access-Key-Expires, ETag, Content-Range"

export interface CrossOrigin {
  /** The response to a question of a browser whether it may send a request; undefined: the request is none. */
  readonly preflight: (
    request: HttpServerRequest.HttpServerRequest
  ) => HttpServerResponse.HttpServerResponse | undefined
  /** Adds the headers that let the page of an allowed origin read the response. */
  readonly put: (
    request: HttpServerRequest.HttpServerRequest,
    response: HttpServerResponse.HttpServerResponse
  ) => HttpServerResponse.HttpServerResponse
}

/** `origins`: as browsers write them, for example `https://console.example.com`. */
export const make = (origins: ReadonlyArray<string>): CrossOrigin | undefined => {
  if (origins.length === 0) return undefined
  const allowed = new Set(origins)
  const originOf = ({ headers }: HttpServerRequest.HttpServerRequest) => {
    const { origin } = headers
    return origin !== undefined && allowed.has(origin) ? origin : undefined
  }
  return {
    preflight: (request) =>
      request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined &&
        originOf(request) !== undefined
        ? HttpServerResponse.empty({ status: 204, headers: preflightHeaders })
        : undefined,
    put: (request, response) => {
      const origin = originOf(request)
      const vary = response.headers["vary"]
      const varied = HttpServerResponse.setHeader(response, "vary", vary === undefined ? "Origin" : `${vary}, Origin`)
      return origin === undefined ? varied : HttpServerResponse.setHeaders(varied, {
        "access-control-allow-origin": origin,
        "access-control-expose-headers": exposed
      })
    }
  }
}
