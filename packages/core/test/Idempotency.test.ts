import { defaultProjectId, Idempotency } from "@device-cloud/core"
import { TestCloud } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Redacted } from "effect"

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
