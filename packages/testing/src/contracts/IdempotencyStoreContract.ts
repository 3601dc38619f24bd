/**
 * The laws of `IdempotencyStore`.
 */
import { type ClaimedRequest, type DeviceCloud, IdempotencyStore } from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertProject, unique } from "./Samples.ts"

const newRequest = Effect.map(
  insertProject,
  ({ id }): ClaimedRequest => ({ projectId: id, key: unique("key"), at: epoch })
)

const claim = (request: ClaimedRequest, fields: { readonly fingerprint?: string; readonly at?: number } = {}) =>
  Effect.flatMap(IdempotencyStore, (store) => {
    const { at = request.at, fingerprint = "first" } = fields
    return store.claim({
      ...request,
      fingerprint,
      at,
      claimExpiredBefore: at - 100,
      answerExpiredBefore: at - 1000
    })
  })

/** Characters of the longest key and the longest response. */
const [maxKey, maxBody] = [255, 90_000]

const claimed = { _tag: "Claimed" } as const
const answer = { status: 200, body: `{"code":0,"text":"\\u0000 é"}` }

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`IdempotencyStore: ${name}`, (it) => {
    it.effect("gives a request to one caller and its answer to all others", () =>
      Effect.gen(function*() {
        const store = yield* IdempotencyStore
        const request = yield* newRequest
        assert.deepStrictEqual(yield* claim(request), claimed)
        assert.deepStrictEqual(yield* claim(request, { fingerprint: "second" }), {
          _tag: "InProgress",
          fingerprint: "first"
        })
        const stranger = { ...request, projectId: (yield* newRequest).projectId }
        assert.deepStrictEqual(yield* claim(stranger), claimed)
        yield* store.answer(request, answer)
        assert.deepStrictEqual(yield* claim(request), { _tag: "Answered", fingerprint: "first", answer })
        assert.strictEqual((yield* claim(stranger))._tag, "InProgress")
        yield* store.release(stranger)
        assert.strictEqual((yield* claim(request))._tag, "Answered")
        assert.deepStrictEqual(yield* claim({ ...request, key: request.key.toUpperCase() }), claimed)
        yield* store.release(request)
        assert.deepStrictEqual(yield* claim(request), { _tag: "Answered", fingerprint: "first", answer })
      }))

    it.effect("tells long keys apart that begin alike, and keeps long responses whole", () =>
      Effect.gen(function*() {
        const store = yield* IdempotencyStore
        const { projectId } = yield* newRequest
        const [request, other] = ["a", "b"].map((end): ClaimedRequest => ({
          projectId,
          key: "k".repeat(maxKey - 1) + end,
          at: epoch
        }))
        assert.deepStrictEqual(yield* claim(request!), claimed)
        assert.deepStrictEqual(yield* claim(other!), claimed)
        const long = { status: 200, body: "b".repeat(maxBody) }
        yield* store.answer(request!, long)
        assert.deepStrictEqual(yield* claim(request!), { _tag: "Answered", fingerprint: "first", answer: long })
        assert.strictEqual((yield* claim(other!))._tag, "InProgress")
      }))

    it.effect("tells that a response was not kept, and counts the requests of a project", () =>
      Effect.gen(function*() {
        const store = yield* IdempotencyStore
        const request = yield* newRequest
        const { projectId } = request
        assert.strictEqual(yield* store.count(projectId, 10), 0)
        yield* claim(request)
        yield* store.answer(request, { status: 201, body: null })
        assert.deepStrictEqual(yield* claim(request), {
          _tag: "Answered",
          fingerprint: "first",
          answer: { status: 201, body: null }
        })
        for (const key of ["b", "c"]) yield* claim({ ...request, key })
        assert.deepStrictEqual([yield* store.count(projectId, 10), yield* store.count(projectId, 2)], [3, 2])
        yield* store.release({ ...request, key: "c" })
        assert.strictEqual(yield* store.count(projectId, 10), 2)
      }))

    it.effect("gives a request to one of many callers at the same time", () =>
      Effect.gen(function*() {
        const request = yield* newRequest
        const claims = yield* Effect.all(Array.from({ length: 20 }, () => claim(request)), { concurrency: "unbounded" })
        assert.deepStrictEqual(
          claims.toSorted((a, b) => a._tag.localeCompare(b._tag)),
          [claimed, ...Array.from({ length: 19 }, () => ({ _tag: "InProgress", fingerprint: "first" }) as const)]
        )
      }))

    it.effect("gives a request again that was released, or not answered in time, or answered long ago", () =>
      Effect.gen(function*() {
        const store = yield* IdempotencyStore
        const request = yield* newRequest
        yield* claim(request)
        yield* store.release(request)
        assert.deepStrictEqual(yield* claim(request), claimed)
        assert.strictEqual((yield* claim(request, { at: epoch + 100 }))._tag, "InProgress")
        assert.deepStrictEqual(yield* claim(request, { at: epoch + 101, fingerprint: "second" }), claimed)
        yield* store.answer({ ...request, at: epoch + 101 }, answer)
        assert.deepStrictEqual(yield* claim(request, { at: epoch + 1101 }), {
          _tag: "Answered",
          fingerprint: "second",
          answer
        })
        const again = { at: epoch + 1102 }
        assert.deepStrictEqual(yield* claim(request, again), claimed)
        assert.deepStrictEqual(yield* claim(request, again), { _tag: "InProgress", fingerprint: "first" })
      }))

    it.effect("a caller whose claim has expired changes nothing of the request that another caller has", () =>
      Effect.gen(function*() {
        const store = yield* IdempotencyStore
        const request = yield* newRequest
        yield* claim(request)
        const next = { ...request, at: epoch + 101 }
        assert.deepStrictEqual(yield* claim(next, { fingerprint: "second" }), claimed)
        yield* store.answer(request, answer)
        assert.deepStrictEqual(yield* claim(next), { _tag: "InProgress", fingerprint: "second" })
        yield* store.release(request)
        assert.deepStrictEqual(yield* claim(next), { _tag: "InProgress", fingerprint: "second" })
        const own = { status: 201, body: "of the second" }
        yield* store.answer(next, own)
        yield* store.answer(request, answer)
        yield* store.release(request)
        assert.deepStrictEqual(yield* claim(next), { _tag: "Answered", fingerprint: "second", answer: own })
        // Nobody has taken it over: a late response counts.
        const alone = yield* newRequest
        yield* claim(alone)
        yield* store.answer(alone, answer)
        assert.strictEqual((yield* claim(alone, { at: epoch + 101 }))._tag, "Answered")
      }))

    it.effect("forgets what was claimed long ago, a part at a time", () =>
      Effect.gen(function*() {
        const store = yield* IdempotencyStore
        const at = epoch - 1_000_000
        const requests = [yield* newRequest, yield* newRequest, yield* newRequest]
        for (const request of requests) yield* claim(request, { at })
        yield* store.answer({ ...requests[1]!, at }, answer)
        const later = yield* newRequest
        yield* claim(later, { at: at + 1 })
        const prune = store.prune({ claimedBefore: at + 1, limit: 2 })
        assert.deepStrictEqual([yield* prune, yield* prune, yield* prune], [2, 1, 0])
        assert.strictEqual((yield* claim(later, { at: at + 1 }))._tag, "InProgress")
      }))
  })
