/**
 * What happens to each request outside of all routes. The parts are in files of
 * their own; here they stand in order, in one effect, so that a request pays for
 * one copy of its context and not for one per part (docs/decisions/0036-request-context.md).
 */
import { Cause, Clock, Context, Effect } from "effect"
import { HttpIncomingMessage, HttpServerRequest, type HttpServerResponse } from "effect/http"
import * as ErrorEnvelope from "./ErrorEnvelope.ts"
import { withLiteralPath } from "./LiteralPath.ts"
import { limitAddress, RateLimits } from "./RateLimits.ts"
import * as RequestDeadline from "./RequestDeadline.ts"
import * as RequestId from "./RequestId.ts"
import * as RequestLog from "./RequestLog.ts"
import * as RequestMetrics from "./RequestMetrics.ts"
import type { RouteTable } from "./RouteTable.ts"

/** Makes a function that wraps the router. The result fails with nothing: each failure is a response. */
export const make = Effect.fnUntraced(function*(routes: RouteTable) {
  const clock = yield* Clock.Clock
  const requestIdOf = yield* RequestId.make
  const watch = yield* RequestDeadline.make
  const count = yield* RequestMetrics.make
  const limits = yield* RateLimits

  return <E, R>(
    app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R | HttpServerRequest.HttpServerRequest> =>
    Effect.withFiber((fiber) => {
      const sent = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
      const request = withLiteralPath(sent)
      const requestId = requestIdOf(request)
      const startedAt = clock.currentTimeMillisUnsafe()
      const isInTime = RequestDeadline.isExempt(request) ? () => true : watch(fiber, startedAt)

      const finish = (response: HttpServerResponse.HttpServerResponse) => {
        const millis = clock.currentTimeMillisUnsafe() - startedAt
        count(fiber.context, request.method, response.status, millis)
        return RequestLog.log(fiber, request, RequestId.put(response, requestId), millis)
      }
      const explain = (cause: Cause.Cause<E>) =>
        isInTime() || !Cause.hasInterrupts(cause)
          ? ErrorEnvelope.fromCause(cause, request, requestId, routes)
          : Effect.map(RequestDeadline.tooLate(request), ErrorEnvelope.toResponse)

      return limitAddress(limits, request, app).pipe(
        Effect.matchCauseEffect({
          onSuccess: (response) => {
            isInTime()
            return finish(ErrorEnvelope.complete(response))
          },
          onFailure: (cause) => Effect.flatMap(explain(cause), (response) => finish(ErrorEnvelope.complete(response)))
        }),
        Effect.updateContext((context: Context.Context<R>) =>
          RequestLog.annotate(
            Context.add(
              request === sent ? context : Context.add(context, HttpServerRequest.HttpServerRequest, request),
              HttpIncomingMessage.MaxBodySize,
              ErrorEnvelope.maxBodySize
            ),
            requestId
          )
        )
      )
    })
})
