/**
 * What happens to each request outside of all routes. The parts are in files of
 * their own; here they stand in order, in one effect, so that a request pays for
 * one copy of its context and not for one per part (docs/decisions/0036-request-context.md).
 */
import { abandonable } from "@device-cloud/core"
import { Cause, Clock, Context, Effect, type Fiber } from "effect"
import { HttpIncomingMessage, HttpServerRequest, type HttpServerResponse } from "effect/http"
import * as HealthRoutes from "../HealthRoutes.ts"
import * as BodyLimits from "./BodyLimits.ts"
import { countedAddress, makeWithOrigin } from "./ClientAddress.ts"
import * as CrossOrigin from "./CrossOrigin.ts"
import * as ErrorEnvelope from "./ErrorEnvelope.ts"
import * as FetchedBodies from "./FetchedBodies.ts"
import * as LateRefusals from "./LateRefusals.ts"
import { withLiteralPath, withoutEmptyParameters } from "./LiteralPath.ts"
import { limitAddress, RateLimits } from "./RateLimits.ts"
import * as RequestDeadline from "./RequestDeadline.ts"
import * as RequestId from "./RequestId.ts"
import * as RequestLog from "./RequestLog.ts"
import * as RequestMetrics from "./RequestMetrics.ts"
import * as RequestSpan from "./RequestSpan.ts"
import type { RouteTable } from "./RouteTable.ts"
import * as SecureDevices from "./SecureDevices.ts"
import * as SecurityHeaders from "./SecurityHeaders.ts"

export interface Options {
  /** Whether devices must use HTTPS, unless they are on this machine. */
  readonly secureDevices: boolean
  /** Origins whose pages may call the API. */
  readonly corsOrigins: ReadonlyArray<string>
}

/** Makes a function that wraps the router. The result fails with nothing: each failure is a response. */
export const make = Effect.fnUntraced(function*(routes: RouteTable, options: Options) {
  const clock = yield* Clock.Clock
  const requestIdOf = yield* RequestId.make
  const watch = yield* RequestDeadline.make
  const count = yield* RequestMetrics.make
  const limits = yield* RateLimits
  const waitToRefuse = yield* LateRefusals.make
  const withOrigin = yield* makeWithOrigin
  const cors = CrossOrigin.make(options.corsOrigins)

  return <E, R>(
    app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R | HttpServerRequest.HttpServerRequest> =>
    Effect.withFiber((fiber) => {
      const sent = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
      const request = FetchedBodies.limit(
        withOrigin(withoutEmptyParameters(withLiteralPath(sent)), fiber.context as Context.Context<never>)
      )
      const requestId = requestIdOf(request)
      const startedAt = clock.currentTimeMillisUnsafe()
      const route = routes.routeOf(request)
      const isInTime = BodyLimits.isUpload(route) ? () => true : watch(fiber, startedAt, route)

      // The router runs in a fiber of its own, and its context has the route that it finds: the response of a request
      // that is late does not wait for a transaction, which cannot end while the database does not answer.
      let routed: Pick<Fiber.Fiber<unknown>, "context"> = fiber
      const served = abandonable(Effect.withFiber((own) => {
        routed = own
        return Effect.onExit(app, () => {
          routed = { context: own.context }
          return Effect.void
        })
      }))

      const finish = (made: HttpServerResponse.HttpServerResponse) => {
        const response = ErrorEnvelope.complete(made)
        const millis = clock.currentTimeMillisUnsafe() - startedAt
        count(routed.context, request.method, response.status, millis)
        RequestSpan.finish(fiber, routed.context, request, response, requestId)
        const readable = cors === undefined ? response : cors.put(request, response)
        const watched = RequestLog.withBreaks(routed.context, request, readable, requestId)
        return RequestLog.log(fiber, routed.context, request, SecurityHeaders.put(watched, requestId), millis)
      }
      const leave = (response: HttpServerResponse.HttpServerResponse) =>
        response.status === 429
          ? Effect.andThen(waitToRefuse(countedAddress(request)), Effect.suspend(() => finish(response)))
          : finish(response)
      const explain = (cause: Cause.Cause<E>) => {
        const name = RequestLog.nameOf(routed.context, request)
        return isInTime() || !Cause.hasInterrupts(cause)
          ? ErrorEnvelope.fromCause(cause, request, name, requestId, routes)
          : Effect.map(RequestDeadline.tooLate(name), ErrorEnvelope.toResponse)
      }

      const refused = options.secureDevices ? SecureDevices.refusalOf(request, route) : undefined
      const early = refused !== undefined
        ? ErrorEnvelope.toResponse(refused)
        : route === undefined && routes.hasEmptyParameter(request)
        ? ErrorEnvelope.noRoute(request, routes)
        : cors?.preflight(request)

      const answer = early === undefined ? served : Effect.succeed(early)
      // A balancer that is told 429 takes the server for one that has failed.
      const responded = (HealthRoutes.isHealth(route) ? answer : limitAddress(limits, request, answer)).pipe(
        Effect.matchCauseEffect({
          onSuccess: (response) => {
            isInTime()
            return leave(response)
          },
          onFailure: (cause) => Effect.flatMap(explain(cause), leave)
        }),
        Effect.updateContext((context: Context.Context<R>) =>
          RequestLog.annotate(
            Context.add(
              request === sent ? context : Context.add(context, HttpServerRequest.HttpServerRequest, request),
              HttpIncomingMessage.MaxBodySize,
              BodyLimits.maxSizeOf(route)
            ),
            requestId
          )
        )
      )
      return RequestSpan.within(fiber, request, responded)
    })
})
