/**
 * A request that comes again is answered as it was the first time (decisions,
 * section 6).
 */
import { Clock, Context, Effect, Layer, Schedule, Schema } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import { IdempotencyStore, type RequestKey, type StoredAnswer } from "./IdempotencyStore.ts"

export class Idempotency extends Context.Service<Idempotency, {
  /** Runs a request the first time within 24 hours; after that, answers what it answered then. */
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

/** How long an answer counts, milliseconds. */
const answerTtl = 24 * 3_600_000
/** How long a request may take; after that its caller is taken for dead. Milliseconds. */
const claimTtl = 60_000

const pruneEvery = "10 minutes"
const pruneLimit = 10_000

/** The key was used for another request, or for one that has not been answered yet. */
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
      answerExpiredBefore: at - answerTtl
    })
    if (claim._tag !== "Claimed" && claim.fingerprint !== fingerprint) {
      return yield* new IdempotencyConflict({ reason: "other-request" })
    }
    if (claim._tag === "Answered") return claim.answer
    if (claim._tag === "InProgress") return yield* new IdempotencyConflict({ reason: "in-progress" })
    const answer = yield* run.pipe(Effect.onError(() => Effect.ignore(store.release(request))))
    // What failed for the server's own reasons may go well the next time.
    if (answer.status >= 500 || answer.status === 429) yield* store.release(request)
    else yield* store.answer(request, answer)
    return answer
  })

  const prune = Effect.gen(function*() {
    const claimedBefore = (yield* Clock.currentTimeMillis) - answerTtl
    while ((yield* store.prune({ claimedBefore, limit: pruneLimit })) === pruneLimit) yield* Effect.yieldNow
  })
  yield* prune.pipe(
    Effect.catch((error) => Effect.logWarning("Old answers could not be forgotten", error)),
    Effect.repeat(Schedule.spaced(pruneEvery)),
    Effect.forkScoped
  )

  return Idempotency.of({ once })
})
