/**
 * What every answer has in common, whatever went wrong: the envelope and the
 * request id.
 */
import { ByteSize, Cause, Clock, Context, Effect, LogLevel, Option, Predicate, Random, References } from "effect"
import {
  FindMyWay,
  HttpIncomingMessage,
  type HttpMethod,
  HttpRouter,
  HttpServerError,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import * as RequestDeadline from "./RequestDeadline.ts"
import { RateLimits } from "./RateLimits.ts"
import * as RequestMetrics from "./RequestMetrics.ts"
import { Code, type Failure, failure, statusOf } from "../Failure.ts"

/** Bodies that are not streamed may have this many bytes. */
export const maxBodySize = ByteSize.mebibytes(2)

/** Seconds after which a client may try again, unless the answer says it. */
const retryAfter = "1"

/** A request id of the client, if it can stand in a header and a log line. */
const usableRequestId = /^[\x21-\x7e]{1,128}$/

/** 32 random bits. */
const randomHex = (random: typeof Random.Random["Service"]): string =>
  (random.nextIntUnsafe() >>> 0).toString(16).padStart(8, "0")

export const toResponse = (answer: Failure): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(answer, { status: statusOf(answer) })

export interface RouteTable {
  /** The methods of the routes that fit this URL. */
  readonly methodsOf: (url: string) => ReadonlyArray<string>
}

/** As long as a request line can be: what is too long for an identifier is told so. */
export const routerConfig = { maxParamLength: 16_384 }

/** To find out which methods a path would have allowed. */
export const makeRouteTable = (
  routes: ReadonlyArray<{ readonly method: HttpMethod.HttpMethod; readonly path: `/${string}` }>
): RouteTable => {
  const table = FindMyWay.make<string>(routerConfig)
  for (const { method, path } of routes) table.on(method === "GET" ? ["GET", "HEAD"] : method, path, path)
  const methods = [...new Set(["HEAD", ...routes.map(({ method }) => method)])]
  return {
    methodsOf: (url) => methods.filter((method) => table.find(method, url) !== undefined)
  }
}

/** Wraps the whole API, outside of all routes. */
export const make = Effect.fnUntraced(function*(routes: RouteTable) {
  const limits = yield* RateLimits
  const clock = yield* Clock.Clock
  const random = yield* Random.Random
  const count = RequestMetrics.make(yield* Effect.context<never>())
  const watch = yield* RequestDeadline.make

  return <E, R>(
    app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R | HttpServerRequest.HttpServerRequest> =>
    Effect.withFiber((fiber) => {
      const asked = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
      const request = withLiteralPath(asked)
      const { method, url } = request
      const sent = request.headers["x-request-id"]
      const requestId = sent !== undefined && usableRequestId.test(sent) ? sent : randomHex(random) + randomHex(random)
      const startedAt = clock.currentTimeMillisUnsafe()
      const isInTime = isUpload(request) ? () => true : watch(fiber, startedAt)

      const finish = (response: HttpServerResponse.HttpServerResponse) => {
        const took = clock.currentTimeMillisUnsafe() - startedAt
        count(method, routeOf(fiber.context), response.status, took)
        const answer = HttpServerResponse.setHeader(response, "x-request-id", requestId)
        return LogLevel.isGreaterThan(fiber.cache.minimumLogLevel, "Debug")
          ? Effect.succeed(answer)
          : Effect.as(Effect.logDebug(`${method} ${url} ${response.status} ${took} ms`), answer)
      }
      const limited = limits.isOn("address") ? Effect.andThen(limits.check("address", addressOf(request)), app) : app
      return limited.pipe(
        Effect.matchCauseEffect({
          onSuccess: (response) => {
            isInTime()
            return finish(complete(response))
          },
          onFailure: (cause) =>
            Effect.flatMap(
              isInTime() || !Cause.hasInterrupts(cause) ? explain(cause, request, requestId, routes) : tooLate(request),
              finish
            )
        }),
        Effect.updateContext((context: Context.Context<R>) =>
          (request === asked ? context : Context.add(context, HttpServerRequest.HttpServerRequest, request)).pipe(
            Context.add(HttpIncomingMessage.MaxBodySize, maxBodySize),
            Context.add(References.CurrentLogAnnotations, {
              ...Context.get(context, References.CurrentLogAnnotations),
              request_id: requestId
            })
          )
        )
      )
    })
})

/** The route that the router has found, as it was declared; empty: none. */
const routeOf = (context: Context.Context<never>): string =>
  Option.match(Context.getOption(context, HttpRouter.RouteContext), {
    onNone: () => "",
    onSome: ({ route }) => route.path
  })

/** Where a request comes from. */
export const addressOf = ({ remoteAddress }: HttpServerRequest.HttpServerRequest): string =>
  Option.getOrElse(remoteAddress, () => "").replace(/^::ffff:/, "")

/** It takes as long as the client's network needs. */
const isUpload = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  headers["content-type"]?.startsWith("multipart/") === true

const tooLate = ({ method, url }: HttpServerRequest.HttpServerRequest) =>
  Effect.as(
    Effect.logWarning(`${method} ${url} took longer than ${RequestDeadline.seconds} seconds`),
    complete(toResponse(
      failure(
        Code.storageUnreachable,
        "The storage does not answer; try again later, the request may have been carried out"
      )
    ))
  )

/** A semicolon is part of a path; the router would take it for the end of one. */
const withLiteralPath = (request: HttpServerRequest.HttpServerRequest): HttpServerRequest.HttpServerRequest => {
  const [path = "", ...query] = request.url.split("?")
  return path.includes(";")
    ? request.modify({ url: [path.replaceAll(";", "%3B"), ...query].join("?") })
    : request
}

/** Answers that the router made without the envelope get it; those that invite another try say when. */
const complete = (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse => {
  if (response.status === 415) {
    return toResponse(failure(Code.mediaType, "The media type of the body is not supported; send application/json"))
  }
  return response.status === 503 || response.status === 429
    ? HttpServerResponse.setHeader(response, "retry-after", retryAfterOf(response))
    : response
}

const retryAfterOf = ({ body }: HttpServerResponse.HttpServerResponse): string => {
  if (body._tag !== "Uint8Array") return retryAfter
  const { data } = JSON.parse(new TextDecoder().decode(body.body)) as Failure
  return String(data?.retry_after ?? retryAfter)
}

const explain = Effect.fnUntraced(function*<E>(
  cause: Cause.Cause<E>,
  request: HttpServerRequest.HttpServerRequest,
  requestId: string,
  routes: RouteTable
) {
  if (Cause.hasInterruptsOnly(cause)) return yield* Effect.failCause(cause as Cause.Cause<never>)
  const error = Cause.squash(cause)
  if (isFailure(error)) return complete(toResponse(error))
  if (HttpServerError.isHttpServerError(error)) {
    const { reason } = error
    if (reason._tag === "RouteNotFound") return noRoute(request, routes.methodsOf(request.url))
    if (reason._tag === "RequestParseError") {
      return toResponse(
        reason.reason === "BodyTooLarge"
          ? failure(Code.tooLarge, `The body is larger than ${ByteSize.toNumberUnsafe(maxBodySize)} bytes`)
          : failure(Code.bodyUnreadable, "The body cannot be read")
      )
    }
  }
  yield* Effect.logError(`${request.method} ${request.url} failed`, cause)
  return toResponse(failure(Code.internal, "Internal error", { request_id: requestId }))
})

const isFailure = (error: unknown): error is Failure =>
  Predicate.hasProperty(error, "code") && error.code === Code.tooMany

const noRoute = (request: HttpServerRequest.HttpServerRequest, methods: ReadonlyArray<string>) => {
  const [path] = request.url.split("?")
  if (methods.length === 0) return toResponse(failure(Code.noSuchRoute, `There is no ${path}`))
  const allowed = methods.join(", ")
  return HttpServerResponse.setHeader(
    toResponse(failure(Code.methodNotAllowed, `${path} takes ${allowed}, not ${request.method}`)),
    "allow",
    allowed
  )
}
