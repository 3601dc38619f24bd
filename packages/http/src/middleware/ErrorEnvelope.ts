/**
 * The envelope of responses to requests that no handler has responded to: paths
 * and methods that do not exist, bodies that cannot be read, and defects.
 */
import { ByteSize, Cause, Effect } from "effect"
import { HttpServerError, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Code, statusOf } from "../Code.ts"
import {
  BodyUnreadable,
  type Failure,
  InternalError,
  StorageUnreachable,
  TooLarge,
  TooManyRequests,
  UnsupportedMediaType
} from "../Failure.ts"
import * as BodyLimits from "./BodyLimits.ts"
import type { RouteTable } from "./RouteTable.ts"

/** Failures that any route can have because of what happens outside of it. */
export const failures = [TooLarge, UnsupportedMediaType, TooManyRequests, InternalError, StorageUnreachable] as const

/** The response that carries a failure. */
export const toResponse = (failure: Failure): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(failure, { status: statusOf(failure.code) })

/** Gives the envelope to a response that the router made without it, and says when another try makes sense. */
export const complete = (
  response: HttpServerResponse.HttpServerResponse
): HttpServerResponse.HttpServerResponse => {
  if (response.status === 415) {
    return toResponse(
      UnsupportedMediaType.make({
        message: "The media type of the body is not supported; send application/json"
      })
    )
  }
  return response.status === 503 || response.status === 429
    ? HttpServerResponse.setHeader(response, "retry-after", retryAfterOf(response))
    : response
}

/** The response to a request that failed. A defect gets into the log, with the name of the request. */
export const fromCause = Effect.fnUntraced(function*<E>(
  cause: Cause.Cause<E>,
  request: HttpServerRequest.HttpServerRequest,
  name: string,
  requestId: string,
  routes: RouteTable
) {
  if (Cause.hasInterruptsOnly(cause)) return yield* Effect.failCause(cause as Cause.Cause<never>)
  const internal = (known: Cause.Cause<unknown>) =>
    Effect.as(
      Effect.logError(`${name} failed`, known),
      toResponse(InternalError.make({ message: "Internal error", data: { request_id: requestId } }))
    )
  const error = Cause.squash(cause)
  if (HttpServerError.isHttpServerError(error)) {
    const { reason } = error
    if (reason._tag === "RouteNotFound") {
      const route = routes.routeOf(request)
      if (route === undefined) return noRoute(request, routes)
      // A mistake of the program: an API beside ours whose layer does not serve its routes.
      return yield* internal(Cause.die(`No handler serves ${request.method} ${route}`))
    }
    if (reason._tag === "RequestParseError") {
      return toResponse(
        reason.reason === "BodyTooLarge"
          ? TooLarge.make({
            message: `The body is larger than ${
              ByteSize.toNumberUnsafe(BodyLimits.maxSizeOf(routes.routeOf(request)))
            } bytes`
          })
          : refusedBy(reason.cause)
      )
    }
  }
  // The message of an error of the server contains the URL, and a URL may contain secrets.
  const known = HttpServerError.isHttpServerError(error) ? Cause.die(error.reason.cause ?? error.reason._tag) : cause
  return yield* internal(known)
})

/** The failure of a body that the HTTP server does not read to its end; `cause` is a `BodyRefused` of its adapter. */
const refusedBy = (cause: unknown): Failure => {
  const { _tag, reason } = (cause ?? {}) as { readonly _tag?: unknown; readonly reason?: unknown }
  if (_tag !== "BodyRefused") return BodyUnreadable.make({ message: "The body cannot be read" })
  return reason === "crowded"
    ? TooManyRequests.make({ message: "Too many bodies arrive at once; try again later", data: { retry_after: 1 } })
    : BodyUnreadable.make({ message: "The body did not arrive in time" })
}

/** Seconds after which a client may try again, unless the response says it. */
const retryAfter = "1"

const retryAfterOf = ({ body }: HttpServerResponse.HttpServerResponse): string => {
  if (body._tag !== "Uint8Array") return retryAfter
  const { data } = JSON.parse(new TextDecoder().decode(body.body)) as {
    readonly data?: { readonly retry_after?: number }
  }
  return String(data?.retry_after ?? retryAfter)
}

/** The response to a request that fits no route. */
export const noRoute = (request: HttpServerRequest.HttpServerRequest, routes: RouteTable) => {
  const [path] = request.url.split("?")
  const methods = routes.methodsOf(request.url)
  if (methods.length === 0) return toResponse({ code: Code.noSuchRoute, message: `There is no ${path}` })
  const allowed = methods.join(", ")
  return HttpServerResponse.setHeader(
    toResponse({ code: Code.methodNotAllowed, message: `${path} takes ${allowed}, not ${request.method}` }),
    "allow",
    allowed
  )
}
