import { AuditLog, defaultProjectId, Idempotency, Products } from "@device-cloud/core"
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

const draft = {
  nodeType: "direct",
  networkType: "wifi",
  validateType: "weak",
  dataFormat: "json",
  authType: "secret"
} as const

it.live("a request that was stored and whose answer was lost is not carried out again", () =>
  Effect.gen(function*() {
    const { once } = yield* Idempotency
    const products = yield* Products
    const create = (key: string) =>
      AuditLog.use(({ carryOut }) =>
        carryOut(
          {
            projectId: defaultProjectId,
            keyId: "",
            keyName: "",
            action: "products.createProduct",
            resource: { kind: "product", id: "" },
            address: "",
            requestId: ""
          },
          once(
            request(key),
            Effect.andThen(
              products.create(defaultProjectId, { ...draft, name: key }),
              done
            )
          ),
          () => 0
        )
      )
    const names = Effect.map(
      products.list(defaultProjectId, { page: 1, pageSize: 100 }),
      ({ items }) => items.map(({ name }) => name)
    )
    assert.strictEqual((yield* Effect.flip(create("lost")))._tag, "StoreError")
    const conflict = yield* Effect.flip(create("lost"))
    assert.isTrue(conflict._tag === "IdempotencyConflict" && conflict.reason === "not-kept")
    assert.deepStrictEqual(yield* names, ["lost"])
    // What was not stored is carried out.
    assert.strictEqual((yield* Effect.flip(create("failed")))._tag, "StoreError")
    for (let i = 0; i < 2; i++) assert.strictEqual((yield* create("failed")).body, "done")
    assert.sameMembers(yield* names, ["lost", "failed"])
  }).pipe(
    Effect.provide(cloudWith(
      { on: "AuditStore.commit", does: "loseAnswer", calls: (n) => n === 1 },
      { on: "AuditStore.commit", does: "fail", calls: (n) => n === 2 }
    ))
  ))
