/**
 * `Idempotency-Key`: a POST that comes again gets the response of the first time
 * (docs/decisions/0015-idempotent-posts.md).
 */
import {
  CurrentAction,
  Idempotency,
  IdempotencyConflict,
  Mac,
  StoreError,
  TooManyIdempotencyKeys
} from "@device-cloud/core"
import { Context, Effect, Layer } from "effect"
import { Hex } from "effect/encoding"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiMiddleware } from "effect/http-api"
import { Code } from "../Code.ts"
import { failWith } from "../DomainFailures.ts"
import {
  BodyUnreadable,
  failure,
  InvalidParameter,
  invalidParameter,
  StorageUnreachable,
  TooManyRequests
} from "../Failure.ts"
import { CurrentPrincipal } from "./Authorization.ts"
import { credentialOf } from "./Credential.ts"

const header = "idempotency-key"

const usableKey = /^[\x21-\x7e]{1,255}$/

/** The key belongs to another request, or to one that has no response yet. */
export const IdempotencyKeyInUse = failure(
  "IdempotencyKeyInUse",
  Code.stateForbids,
  "The Idempotency-Key was used for another request, or its first request has no response that could be returned"
)

/**
 * For a POST endpoint whose response may be kept for a day, sealed. Leave it off
 * where the body is too large to be compared.
 */
export class IdempotencyMiddleware
  extends HttpApiMiddleware.Service<IdempotencyMiddleware, { requires: CurrentPrincipal }>()(
    "@device-cloud/http/IdempotencyMiddleware",
    { error: [IdempotencyKeyInUse, BodyUnreadable, InvalidParameter, TooManyRequests, StorageUnreachable] }
  )
{
  static readonly layer: Layer.Layer<IdempotencyMiddleware, never, Idempotency | Mac> = Layer.effect(
    IdempotencyMiddleware,
    Effect.gen(function*() {
      const idempotency = yield* Idempotency
      const mac = yield* Mac
      return IdempotencyMiddleware.of((handler) =>
        Effect.withFiber(({ context }) => {
          const request = Context.getUnsafe(context, HttpServerRequest.HttpServerRequest)
          const key = request.headers[header]
          return key === undefined ? handler : once(idempotency, mac, key, request, handler)
        })
      )
    })
  )
}

/** Bytes of a body. Of a larger one, its SHA-256 is compared: to make one text of it costs two copies of it. */
const largeBytes = 16 * 1024

/** What tells the body of a request from that of another one. */
const bodyOf = (request: HttpServerRequest.HttpServerRequest, mac: Mac["Service"]) =>
  Effect.flatMap(
    request.arrayBuffer,
    (bytes) =>
      bytes.byteLength > largeBytes ? Effect.succeed(Hex.encode(mac.sha256(new Uint8Array(bytes)))) : request.text
  )

const once = Effect.fnUntraced(function*<E, R>(
  idempotency: Idempotency["Service"],
  mac: Mac["Service"],
  key: string,
  request: HttpServerRequest.HttpServerRequest,
  handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
) {
  const { projectId } = yield* CurrentPrincipal
  if (!usableKey.test(key)) {
    return yield* Effect.fail(
      invalidParameter([{ path: [header], message: "Expected 1 to 255 visible characters" }])
    )
  }
  const body = yield* Effect.mapError(
    bodyOf(request, mac),
    () => BodyUnreadable.make({ message: "The body cannot be read" })
  )
  let isRepeat = true
  const stored = Effect.map(handler, (response) => {
    isRepeat = false
    return { status: response.status, body: textOf(response) }
  })
  const { body: text, status } = yield* idempotency.once(
    {
      projectId,
      key,
      accessKey: credentialOf(request).secret,
      text: `${request.method} ${request.url}\n${body}`
    },
    stored
  ).pipe(
    Effect.catch((error): Effect.Effect<never, E | Refused> => {
      if (error instanceof IdempotencyConflict) return Effect.fail(inUse(error))
      if (error instanceof TooManyIdempotencyKeys) return Effect.fail(tooMany(error))
      return error instanceof StoreError ? failWith(error) : Effect.fail(error as E)
    })
  )
  // The audit log has the entry of the first time.
  if (isRepeat) (yield* CurrentAction)?.settle(true)
  return HttpServerResponse.text(text, { status, contentType: "application/json" })
})

type Refused = typeof IdempotencyKeyInUse.Type | typeof TooManyRequests.Type | typeof StorageUnreachable.Type

const inUse = ({ message }: IdempotencyConflict) => IdempotencyKeyInUse.make({ message: `Idempotency-Key: ${message}` })

const tooMany = ({ maximum, retryAfter }: TooManyIdempotencyKeys) =>
  TooManyRequests.make({
    message: `Idempotency-Key: the project has used ${maximum} keys within a day; try again later, or without one`,
    data: { retry_after: retryAfter }
  })

/** Responses of the API are JSON, encoded already. */
const textOf = ({ body }: HttpServerResponse.HttpServerResponse): string =>
  body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : ""
