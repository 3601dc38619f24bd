/**
 * Runs a request once and returns the same response when the request is repeated
 * (docs/decisions/0015-idempotent-posts.md).
 */
import { Clock, Context, Effect, Layer, Schedule, Schema } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import { IdempotencyStore, type RequestKey, type StoredAnswer } from "./IdempotencyStore.ts"

export class Idempotency extends Context.Service<Idempotency, {
  /**
   * Runs a request and stores its response for 24 hours. Returns the stored
   * response when a request with the same key and fingerprint comes again. Does
   * not store responses with status 429 or 500 and above. Fails with
   * `IdempotencyConflict` if the key belongs to a request with another fingerprint,
   * or to one that is still running.
   */
  readonly once: <E, R>(
    request: RequestKey,
    fingerprint: string,
    run: Effect.Effect<StoredAnswer, E, R>
  ) => Effect.Effect<StoredAnswer, E | IdempotencyConflict | StoreError, R>
}>()("@device-cloud/core/idempotency/Idempotency") {
  static readonly layer: Layer.Layer<Idempotency, never, IdempotencyStore> = Layer.effect(
    Idempotency,
    Effect.suspend(() => make)
  )
}

/** How long a response is kept, milliseconds. */
const responseTtl = 24 * 3_600_000
/** How long a request may run, milliseconds. After that, a repeated request runs again. */
const claimTtl = 60_000

/** How often old responses are deleted. */
const pruneEvery = "10 minutes"
/** Responses that are deleted in one transaction. */
const pruneLimit = 10_000

/** The key belongs to another request, or to the same request, which is still running. */
export class IdempotencyConflict extends Schema.TaggedError<IdempotencyConflict>()("IdempotencyConflict", {
  reason: Schema.Literals(["other-request", "in-progress"])
}) {}

const make = Effect.gen(function*() {
  const store = yield* IdempotencyStore

  const once = Effect.fnUntraced(function*<E, R>(
    request: RequestKey,
    fingerprint: string,
    run: Effect.Effect<StoredAnswer, E, R>
  ): Effect.fn.Return<StoredAnswer, E | IdempotencyConflict | StoreError, R> {
    const at = yield* Clock.currentTimeMillis
    const claim = yield* store.claim({
      ...request,
      fingerprint,
      at,
      claimExpiredBefore: at - claimTtl,
      answerExpiredBefore: at - responseTtl
    })
    if (claim._tag !== "Claimed" && claim.fingerprint !== fingerprint) {
      return yield* new IdempotencyConflict({ reason: "other-request" })
    }
    if (claim._tag === "Answered") return claim.answer
    if (claim._tag === "InProgress") return yield* new IdempotencyConflict({ reason: "in-progress" })
    const response = yield* run.pipe(Effect.onError(() => Effect.ignore(store.release(request))))
    // A request that failed because of the server or its limits may succeed the next time.
    if (response.status >= 500 || response.status === 429) yield* store.release(request)
    else yield* store.answer(request, response)
    return response
  })

  const prune = Effect.gen(function*() {
    const claimedBefore = (yield* Clock.currentTimeMillis) - responseTtl
    while ((yield* store.prune({ claimedBefore, limit: pruneLimit })) === pruneLimit) yield* Effect.yieldNow
  })
  yield* prune.pipe(
    Effect.catch((error) => Effect.logWarning("Old responses could not be forgotten", error)),
    Effect.repeat(Schedule.spaced(pruneEvery)),
    Effect.forkScoped
  )

  return Idempotency.of({ once })
})
