/**
 * What every answer has in common, whatever went wrong: the envelope and the
 * request id.
 */
import { ByteSize, Cause, Clock, Context, Effect, Exit, Option, Predicate, Random, References } from "effect"
import {
  FindMyWay,
  HttpIncomingMessage,
  type HttpMethod,
  HttpServerError,
  HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import type { RateLimits } from "./RateLimits.ts"
import type * as RequestMetrics from "./RequestMetrics.ts"
import { Code, type Failure, failure, statusOf } from "./Failure.ts"

/** Bodies that are not streamed may have this many bytes. */
export const maxBodySize = ByteSize.mebibytes(2)

/** Seconds after which a client may try again, unless the answer says it. */
const retryAfter = "1"

/** A request id of the client, if it can stand in a header and a log line. */
const usableRequestId = /^[\x21-\x7e]{1,128}$/

const makeRequestId = Effect.map(
  Random.Random,
  (random) => [0, 1].map(() => (random.nextIntUnsafe() >>> 0).toString(16).padStart(8, "0")).join("")
)

export const toResponse = (answer: Failure): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(answer, { status: statusOf(answer) })

export interface RouteTable {
  /** The route that fits, as it was declared; empty: none. */
  readonly routeOf: (method: string, url: string) => string
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
    routeOf: (method, url) => table.find(method, url)?.handler ?? "",
    methodsOf: (url) => methods.filter((method) => table.find(method, url) !== undefined)
  }
}

/** Wraps the whole API, outside of all routes. */
export const everyAnswer = ({ count, limits, routes }: {
  readonly routes: RouteTable
  readonly limits: RateLimits["Service"]
  readonly count: ReturnType<typeof RequestMetrics.make>
}) =>
<E, R>(
  app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R | HttpServerRequest.HttpServerRequest> =>
  Effect.gen(function*() {
    const request = withLiteralPath(yield* HttpServerRequest.HttpServerRequest)
    const sent = request.headers["x-request-id"]
    const requestId = sent !== undefined && usableRequestId.test(sent) ? sent : yield* makeRequestId
    const clock = yield* Clock.Clock
    const startedAt = clock.currentTimeMillisUnsafe()
    const limited = limits.isOn("address") ? Effect.andThen(limits.check("address", addressOf(request)), app) : app
    const response = yield* (isUpload(request) ? limited : inTime(limited, request)).pipe(
      Effect.exit,
      Effect.flatMap((exit) =>
        Exit.isSuccess(exit) ? Effect.succeed(complete(exit.value)) : explain(exit.cause, request, requestId, routes)
      ),
      Effect.tap(({ status }) => {
        const { method, url } = request
        const took = clock.currentTimeMillisUnsafe() - startedAt
        count(method, routes.routeOf(method, url), status, took)
        return Effect.logDebug(`${method} ${url} ${status} ${took} ms`)
      }),
      Effect.updateContext((context: Context.Context<R>) =>
        context.pipe(
          Context.add(HttpServerRequest.HttpServerRequest, request),
          Context.add(HttpIncomingMessage.MaxBodySize, maxBodySize),
          Context.add(References.CurrentLogAnnotations, {
            ...Context.get(context, References.CurrentLogAnnotations),
            request_id: requestId
          })
        )
      )
    )
    return HttpServerResponse.setHeader(response, "x-request-id", requestId)
  })

/** Where a request comes from. */
export const addressOf = ({ remoteAddress }: HttpServerRequest.HttpServerRequest): string =>
  Option.getOrElse(remoteAddress, () => "").replace(/^::ffff:/, "")

/** It takes as long as the client's network needs. */
const isUpload = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  headers["content-type"]?.startsWith("multipart/") === true

const inTime = <E, R>(
  app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  { method, url }: HttpServerRequest.HttpServerRequest
) =>
  Effect.timeoutOrElse(app, {
    duration: answerTime,
    orElse: () => Effect.as(Effect.logWarning(`${method} ${url} took longer than ${answerTime}`), tooLate)
  })

/** How long the storage may take. */
const answerTime = "15 seconds"

const tooLate = toResponse(
  failure(
    Code.storageUnreachable,
    "The storage does not answer; try again later, the request may have been carried out"
  )
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
