/**
 * The log of requests: each line about one names it, and the level `Debug` has a
 * line for each response.
 */
import { Context, Effect, type Fiber, LogLevel, References } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"

/** Adds the id of the request to what is logged on its behalf. */
export const annotate = <R>(context: Context.Context<R>, requestId: string): Context.Context<R> =>
  Context.add(context, References.CurrentLogAnnotations, {
    ...Context.get(context, References.CurrentLogAnnotations),
    request_id: requestId
  })

/** Returns a response after its line is in the log. */
export const log = (
  fiber: Fiber.Fiber<unknown, unknown>,
  { method, url }: HttpServerRequest.HttpServerRequest,
  response: HttpServerResponse.HttpServerResponse,
  millis: number
): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  LogLevel.isGreaterThan(fiber.cache.minimumLogLevel, "Debug")
    ? Effect.succeed(response)
    : Effect.as(Effect.logDebug(`${method} ${url} ${response.status} ${millis} ms`), response)
