/**
 * Runs a request once and returns the same response when the request is repeated
 * (docs/decisions/0015-idempotent-posts.md, docs/decisions/0053-idempotency-keys-keep-no-secrets.md).
 */
import { Cause, Clock, Context, Effect, Fiber, Layer, Redacted, Schema } from "effect"
import { CurrentAction } from "../audit/AuditedAction.ts"
import { DomainError } from "../kernel/DomainError.ts"
import { Mac } from "../kernel/Mac.ts"
import type { Randomness } from "../kernel/Randomness.ts"
import * as NodeCache from "../kernel/NodeCache.ts"
import * as Periodic from "../kernel/Periodic.ts"
import { type StoreError, untilStored } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import { type ClaimedRequest, IdempotencyStore, type RequestKey } from "./IdempotencyStore.ts"
import { makeSeal, type Seal } from "./SealedAnswer.ts"

/** A request that may be repeated. */
export interface RepeatableRequest extends RequestKey {
  /** Of the caller. Only a caller with the same one gets the stored response. */
  readonly accessKey: Redacted.Redacted
  /** Tells requests of the same key apart; of any length. */
  readonly text: string
}

/** A response to keep. */
export interface Answer {
  /** HTTP status. */
  readonly status: number
  readonly body: string
}

export class Idempotency extends Context.Service<Idempotency, {
  /**
   * Runs a request and stores its response for 24 hours, if that is a success
   * (status below 400) of at most 64 KiB. The request runs to its end, also when
   * its caller does not wait for it. Returns the stored response when the
   * same request comes again with the same access key. Fails with
   * `IdempotencyConflict` if the key belongs to another request, to one of another
   * access key, to one that is still running, or to one that was carried out and
   * whose response was too large to be kept, or was lost with the storage or the
   * server. Fails with `TooManyIdempotencyKeys`, without running the request, if the
   * project has used {@link MaxIdempotencyKeys} within 24 hours; other nodes may let
   * some more through for ten seconds.
   */
  readonly once: <E, R>(
    request: RepeatableRequest,
    run: Effect.Effect<Answer, E, R>
  ) => Effect.Effect<Answer, E | IdempotencyConflict | TooManyIdempotencyKeys | StoreError, R>
}>()("@device-cloud/core/idempotency/Idempotency") {
  static readonly layer: Layer.Layer<Idempotency, never, IdempotencyStore | Mac | Randomness> = Layer.effect(
    Idempotency,
    Effect.suspend(() => make)
  )
}

/** Keys of requests that a project may have used within 24 hours. Default 100,000. */
export const MaxIdempotencyKeys = Context.Reference<number>("@device-cloud/core/idempotency/MaxIdempotencyKeys", {
  defaultValue: () => 100_000
})

/** How long a response is kept, milliseconds. */
const responseTtl = 24 * 3_600_000
/** How long a request may run, milliseconds. After that, a repeated request runs again. */
const claimTtl = 60_000
/** UTF-8 bytes of a response that is kept. */
const maxAnswerBytes = 65_536

/** How often old responses are deleted, milliseconds. */
const pruneEvery = 600_000
/** Responses that are deleted in one transaction. */
const pruneLimit = 10_000

/** Projects whose numbers of keys are remembered. */
const countedProjects = 10_000
/** How long the number of keys of a project is remembered, milliseconds. Counting reads each of them. */
const countTtl = 10_000

const conflicts = {
  "in-progress": "The first request with this key is still being answered",
  "other-request": "This key was used for another request, or with another access key",
  "not-kept": "The first request with this key was carried out; its response was too large to be kept, or was lost"
} as const

/** The request cannot run under this key, or its response cannot be returned. */
export class IdempotencyConflict extends DomainError<IdempotencyConflict>()(
  "IdempotencyConflict",
  {
    /** `not-kept`: the request was carried out; its response was too large to be kept, or was lost. */
    reason: Schema.Literals(["other-request", "in-progress", "not-kept"])
  },
  ({ reason }) => conflicts[reason]
) {}

/** The project has used as many keys as it may. */
export class TooManyIdempotencyKeys extends DomainError<TooManyIdempotencyKeys>()(
  "TooManyIdempotencyKeys",
  {
    maximum: Schema.Int,
    /** Seconds until keys may have been forgotten. */
    retryAfter: Schema.Int
  },
  ({ maximum }) => `The project has used ${maximum} idempotency keys, as many as it may`
) {}

const make = Effect.gen(function*() {
  const store = yield* IdempotencyStore
  const mac = yield* Mac
  const sealOf = yield* makeSeal
  const maximum = yield* MaxIdempotencyKeys
  const scope = yield* Effect.scope

  /** Nobody without the access key can find out by guessing what the request was. */
  const fingerprintOf = ({ accessKey, text }: RepeatableRequest) =>
    mac.sign("hmacsha256", Redacted.value(accessKey), text)

  const counts = yield* NodeCache.make({
    capacity: countedProjects,
    timeToLive: countTtl,
    load: ([projectId]: ReadonlyArray<ProjectId>) =>
      Effect.map(
        store.count(projectId!, maximum + 1),
        (used) => new Map([[projectId!, { used }]])
      )
  })

  /** Counts a key that this node has claimed. Fails if there are too many then. */
  const countKey = Effect.fnUntraced(function*(projectId: ProjectId) {
    const known = counts.fresh(projectId)
    if (known !== undefined) known.used++
    const { used } = known ?? (yield* counts.get([projectId])).get(projectId)!
    if (used <= maximum) return
    return yield* new TooManyIdempotencyKeys({ maximum, retryAfter: pruneEvery / 1000 })
  })

  /** Runs a request whose key is claimed, and stores its response. */
  const carryOut = Effect.fnUntraced(function*<E, R>(
    claimed: ClaimedRequest,
    seal: Seal,
    release: Effect.Effect<void>,
    run: Effect.Effect<Answer, E, R>
  ) {
    const response = yield* Effect.andThen(countKey(claimed.projectId), run).pipe(
      // Nobody knows how much of a request was carried out that was interrupted: it does not run again.
      Effect.tapCause((cause) => Cause.hasInterrupts(cause) ? Effect.void : release)
    )
    // What was refused can be corrected, and what failed may succeed the next time.
    if (response.status >= 400) yield* release
    else {
      const isKept = new TextEncoder().encode(response.body).length <= maxAnswerBytes
      const body = isKept ? yield* seal.close(response.body) : null
      // Without it, a repetition would carry the request out again.
      yield* untilStored(store.answer(claimed, { status: response.status, body }))
    }
    return response
  })

  const once = Effect.fnUntraced(function*<E, R>(
    repeatable: RepeatableRequest,
    run: Effect.Effect<Answer, E, R>
  ): Effect.fn.Return<Answer, E | IdempotencyConflict | TooManyIdempotencyKeys | StoreError, R> {
    const { accessKey, key, projectId } = repeatable
    const request = { projectId, key }
    const fingerprint = fingerprintOf(repeatable)
    const at = yield* Clock.currentTimeMillis
    const claimed = { ...request, at }
    /** Removes the claim; while the storage is away, nobody waits for that. In the end it expires. */
    const unclaim = store.release(claimed).pipe(
      Effect.catch(() =>
        Effect.forkIn(Effect.ignore(Effect.timeoutOption(untilStored(store.release(claimed)), claimTtl)), scope)
      )
    )
    const claim = yield* store.claim({
      ...claimed,
      fingerprint,
      claimExpiredBefore: at - claimTtl,
      answerExpiredBefore: at - responseTtl
    }).pipe(
      // It may have been stored, and the answer was lost.
      Effect.tapError(({ retryable }) => retryable ? unclaim : Effect.void)
    )
    if (claim._tag !== "Claimed" && claim.fingerprint !== fingerprint) {
      return yield* new IdempotencyConflict({ reason: "other-request" })
    }
    if (claim._tag === "InProgress") return yield* new IdempotencyConflict({ reason: "in-progress" })
    const seal = sealOf(request, accessKey)
    if (claim._tag === "Answered") {
      const { body, status } = claim.answer
      if (body === null) return yield* new IdempotencyConflict({ reason: "not-kept" })
      return { status, body: seal.open(body) }
    }
    const action = yield* CurrentAction
    if (action !== undefined) action.claim = { key, at }
    const release = Effect.suspend(() => {
      const known = counts.last(projectId)
      if (known !== undefined) known.used--
      return unclaim
    })
    return yield* Fiber.join(yield* Effect.forkIn(carryOut(claimed, seal, release, run), scope))
  })

  const prune = Effect.gen(function*() {
    const claimedBefore = (yield* Clock.currentTimeMillis) - responseTtl
    while ((yield* store.prune({ claimedBefore, limit: pruneLimit })) === pruneLimit) yield* Effect.yieldNow
  })
  yield* prune.pipe(
    Effect.catch((error) => Effect.logWarning("Old responses could not be forgotten", error)),
    Periodic.every(pruneEvery)
  )

  return Idempotency.of({ once })
})
