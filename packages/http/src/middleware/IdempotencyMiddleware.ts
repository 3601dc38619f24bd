/**
 * `Idempotency-Key`: a POST that comes again is answered as it was the first
 * time (decisions, section 6).
 */
import { type Idempotency, IdempotencyConflict, type Principal, type ProjectId, StoreError } from "@device-cloud/core"
import { Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { Code, type Failure, failure, failWith, invalidParameter } from "../Failure.ts"

const header = "idempotency-key"
const usableKey = /^[\x21-\x7e]{1,255}$/

/** Its answer shows a secret that is kept nowhere; or its body is too large to be compared. */
const neverKept = /\/access-keys$|\/oss(?:\/|$)/

export const answerOnce = <E, R>(
  idempotency: Idempotency["Service"],
  { projectId }: Principal,
  answer: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
): Effect.Effect<HttpServerResponse.HttpServerResponse, E | Failure, R | HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
    const key = request.headers[header]
    return key === undefined || neverKept.test(request.url.split("?")[0]!)
      ? answer
      : keep(idempotency, projectId, key, request, answer)
  })

const keep = Effect.fnUntraced(
  function*<E, R>(
    idempotency: Idempotency["Service"],
    projectId: ProjectId,
    key: string,
    request: HttpServerRequest.HttpServerRequest,
    answer: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
  ) {
    if (!usableKey.test(key)) {
      return yield* Effect.fail(
        invalidParameter([{ path: [header], message: "Expected 1 to 255 visible characters" }])
      )
    }
    const body = yield* Effect.mapError(
      request.text,
      () => failure(Code.bodyUnreadable, "The body cannot be read")
    )
    const stored = Effect.map(answer, (response) => ({ status: response.status, body: textOf(response) }))
    const { body: text, status } = yield* idempotency.once(
      { projectId, key },
      `${request.method} ${request.url}\n${body}`,
      stored
    ).pipe(Effect.catch((error): Effect.Effect<never, E | Failure> => {
      if (error instanceof IdempotencyConflict) return Effect.fail(conflict(error))
      return error instanceof StoreError ? failWith(error) : Effect.fail(error as E)
    }))
    return HttpServerResponse.text(text, { status, contentType: "application/json" })
  }
)

const conflict = ({ reason }: IdempotencyConflict): Failure =>
  failure(
    Code.stateForbids,
    reason === "in-progress"
      ? "Idempotency-Key: the first request with this key is still being answered"
      : "Idempotency-Key: this key was used for another request"
  )

/** All answers of the API are JSON, encoded already. */
const textOf = ({ body }: HttpServerResponse.HttpServerResponse): string =>
  body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : ""
