/**
 * The log of requests: each line about one names it, and the level `Debug` has a
 * line for each response.
 */
import { printable, StoreError } from "@device-cloud/core"
import { Cause, Context, Effect, type Fiber, LogLevel, References, Stream } from "effect"
import { HttpBody, HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"

/** Adds the id of the request to what is logged on its behalf. */
export const annotate = <R>(context: Context.Context<R>, requestId: string): Context.Context<R> =>
  Context.add(context, References.CurrentLogAnnotations, {
    ...Context.get(context, References.CurrentLogAnnotations),
    request_id: requestId
  })

/** The route that the router has found, as it was declared; empty: none. `context` is that of the fiber of the router. */
export const routeOf = (context: Context.Context<never>): string =>
  Context.getOrUndefined(context as Context.Context<HttpRouter.RouteContext>, HttpRouter.RouteContext)?.route.path ?? ""

/** Parameters of paths that are no secrets. The address of an object is one, and so is the key of a mesh network. */
const shown = new Set([
  "batch_id",
  "device_id",
  "device_name",
  "firmware_id",
  "id",
  "message_id",
  "product_key",
  "project_id",
  "property_id",
  "service_id",
  "task_id"
])

/**
 * Names a request in a line of the log, for example `GET /openapi/v1/things/5BSFO1/detail`.
 * Leaves out what may be a secret: the query, the path of a request that no route
 * fits, and parameters of paths unless they are known to be none.
 */
export const nameOf = (
  context: Context.Context<never>,
  { method }: HttpServerRequest.HttpServerRequest
): string => {
  const route = Context.getOrUndefined(
    context as Context.Context<HttpRouter.RouteContext>,
    HttpRouter.RouteContext
  )
  if (route === undefined) return `${method} (no route)`
  const { params, route: { path } } = route
  return `${method} ${
    path.replace(
      /:(\w+)/g,
      (declared, name: string) => shown.has(name) ? printable(params[name] ?? declared) : declared
    )
  }`
}

/** Returns a response after its line is in the log. */
export const log = (
  fiber: Fiber.Fiber<unknown, unknown>,
  context: Context.Context<never>,
  request: HttpServerRequest.HttpServerRequest,
  response: HttpServerResponse.HttpServerResponse,
  millis: number
): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  LogLevel.isGreaterThan(fiber.cache.minimumLogLevel, "Debug")
    ? Effect.succeed(response)
    : Effect.as(Effect.logDebug(`${nameOf(context, request)} ${response.status} ${millis} ms`), response)

/**
 * Returns a response whose body is a stream with one that tells the log why it ends
 * before it is whole: its status has been sent, and the client sees nothing but the
 * end of the connection. A key that has ended, and a client that leaves, are no news.
 */
export const withBreaks = (
  context: Context.Context<never>,
  request: HttpServerRequest.HttpServerRequest,
  response: HttpServerResponse.HttpServerResponse,
  requestId: string
): HttpServerResponse.HttpServerResponse => {
  const { body } = response
  if (body._tag !== "Stream") return response
  const name = nameOf(context, request)
  const stream = Stream.tapCause(
    body.stream,
    (cause) =>
      Cause.hasDies(cause) || Cause.squash(cause) instanceof StoreError
        ? Effect.annotateLogs(Effect.logWarning(`${name} broke off`, cause), { request_id: requestId })
        : Effect.void
  )
  return HttpServerResponse.setBody(response, HttpBody.stream(stream, body.contentType, body.contentLength))
}
