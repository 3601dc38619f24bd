/**
 * The span of a request, if the application has a tracer. Those that Effect makes
 * carry the whole URL: signatures of devices and addresses of objects.
 */
import { type Context, Effect, type Fiber, Layer, Option, Tracer } from "effect"
import { HttpMiddleware, type HttpServerRequest, type HttpServerResponse, HttpTraceContext } from "effect/http"
import { routeOf } from "./RequestLog.ts"

/** Turns off the spans of Effect. */
export const layer: Layer.Layer<never> = Layer.succeed(HttpMiddleware.TracerDisabledWhen, () => true)

/** Runs a request in a span of its own, below that of the client. */
export const within = <A, E, R>(
  fiber: Fiber.Fiber<unknown, unknown>,
  { headers, method }: HttpServerRequest.HttpServerRequest,
  request: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  fiber.cache.tracer === undefined ? request : Effect.useSpan(
    method,
    { kind: "server", parent: Option.getOrUndefined(HttpTraceContext.fromHeaders(headers)) },
    (span) => Effect.provideService(request, Tracer.ParentSpan, span) as Effect.Effect<A, E, R>
  )

/** Says in the span which route has responded. `context` is that of the fiber of the router. */
export const finish = (
  fiber: Fiber.Fiber<unknown, unknown>,
  context: Context.Context<never>,
  { method }: HttpServerRequest.HttpServerRequest,
  { status }: HttpServerResponse.HttpServerResponse,
  requestId: string
): void => {
  if (fiber.cache.tracer === undefined) return
  const { span } = fiber.cache
  if (span?._tag !== "Span") return
  span.attribute("http.request.method", method)
  span.attribute("http.route", routeOf(context))
  span.attribute("http.response.status_code", status)
  span.attribute("request_id", requestId)
}
