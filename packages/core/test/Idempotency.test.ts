import { defaultProjectId, Idempotency } from "@device-cloud/core"
import { TestCloud } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Redacted } from "effect"
import { cloudWith } from "./FaultyCloud.ts"

const request = (key: string) => ({
  projectId: defaultProjectId,
  key,
  accessKey: Redacted.make("dck_test"),
  text: "POST /products"
})

it.layer(TestCloud.layer, { excludeTestServices: true })("requests with an idempotency key", (it) => {
  it.effect("run to their end once, whether or not their callers wait", () =>
    Effect.gen(function*() {
      const { once } = yield* Idempotency
      const begun = yield* Deferred.make<void>()
      const slow = yield* Deferred.make<void>()
      let runs = 0
      const run = Effect.gen(function*() {
        runs++
        yield* Deferred.succeed(begun, undefined)
        yield* Deferred.await(slow)
        return { status: 200, body: "done" }
      })
      const first = yield* Effect.forkChild(once(request("slow"), run))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(first)
      const early = yield* Effect.flip(once(request("slow"), run))
      assert.strictEqual(early._tag === "IdempotencyConflict" && early.reason, "in-progress")
      yield* Deferred.succeed(slow, undefined)
      const again = once(request("slow"), run).pipe(Effect.tapError(() => Effect.yieldNow))
      const response = yield* Effect.eventually(again)
      assert.deepStrictEqual([response.body, runs], ["done", 1])
    }))
})

const done = Effect.succeed({ status: 200, body: "done" })

/** Until the claim of the request is removed. */
const whenFree = <A, E>(response: Effect.Effect<A, E>) =>
  Effect.eventually(Effect.tapError(response, () => Effect.yieldNow))

it.live("a request whose response could not be stored at once is carried out once", () =>
  Effect.gen(function*() {
    const { once } = yield* Idempotency
    let runs = 0
    const run = Effect.andThen(Effect.sync(() => runs++), done)
    const responses = [yield* once(request("kept"), run), yield* once(request("kept"), run)]
    assert.deepStrictEqual([responses.map(({ body }) => body), runs], [["done", "done"], 1])
  }).pipe(
    Effect.provide(cloudWith({ on: "IdempotencyStore.answer", does: "fail", calls: (n) => n <= 2 }))
  ))

it.live("a request that has failed can be repeated, also if the storage is away at that moment", () =>
  Effect.gen(function*() {
    const { once } = yield* Idempotency
    assert.strictEqual(yield* Effect.flip(once(request("failed"), Effect.fail("failed" as const))), "failed")
    assert.strictEqual((yield* whenFree(once(request("failed"), done))).body, "done")
  }).pipe(
    Effect.provide(cloudWith({ on: "IdempotencyStore.release", does: "fail", calls: (n) => n <= 2 }))
  ))

it.live("a request whose claim was stored and its answer lost can be repeated", () =>
  Effect.gen(function*() {
    const { once } = yield* Idempotency
    const error = yield* Effect.flip(once(request("claimed"), done))
    assert.strictEqual(error._tag, "StoreError")
    assert.strictEqual((yield* once(request("claimed"), done)).body, "done")
  }).pipe(
    Effect.provide(cloudWith({ on: "IdempotencyStore.claim", does: "loseAnswer", calls: (n) => n === 1 }))
  ))
