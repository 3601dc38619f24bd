import { parseTrustedProxies, TrustedProxies } from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { call, testApi } from "@device-cloud/testing/http"
import { assert, it, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import * as LateRefusals from "../src/middleware/LateRefusals.ts"

const proxies = Layer.succeed(TrustedProxies, Result.getOrThrow(parseTrustedProxies(["127.0.0.1"])))

const askFrom = (address: string) => call("GET", "/products", { headers: { "x-forwarded-for": address } })

layer(testApi(StorageMemory.layer, { rateLimits: { address: "1:3600" } }).pipe(Layer.provide(proxies)))(
  "a client that goes on asking while it is refused",
  (it) => {
    it.effect("hears of it a second later, and others do not", () =>
      Effect.gen(function*() {
        const [flooder, other] = ["192.0.2.1", "192.0.2.2"]
        assert.strictEqual((yield* askFrom(flooder)).status, 200)
        for (let i = 0; i < 20; i++) assert.strictEqual((yield* askFrom(flooder)).status, 429)
        const late = yield* Effect.forkChild(askFrom(flooder))
        assert.strictEqual((yield* askFrom(other)).status, 200)
        for (let i = 0; i < 20; i++) assert.strictEqual((yield* askFrom(other)).status, 429)
        assert.isUndefined(late.pollUnsafe())
        yield* TestClock.adjust("1 second")
        const { body, headers, status } = yield* Fiber.join(late)
        assert.deepStrictEqual([status, body.code], [429, 42900])
        assert.isAtLeast(Number(headers["retry-after"]), 1)
        assert.strictEqual((yield* askFrom(flooder)).status, 429)
      }))
  }
)

it.effect("a thousand refusals wait at most; one whose client has gone makes room", () =>
  Effect.gen(function*() {
    const wait = yield* LateRefusals.make
    for (let i = 0; i < 20; i++) yield* wait("192.0.2.1")
    const waiting = yield* Effect.forEach(Array.from({ length: 1000 }), () => Effect.forkChild(wait("192.0.2.1")))
    yield* Effect.yieldNow
    yield* wait("192.0.2.1")
    yield* Fiber.interrupt(waiting[0]!)
    const next = yield* Effect.forkChild(wait("192.0.2.1"), { startImmediately: true })
    assert.isUndefined(next.pollUnsafe())
    yield* TestClock.adjust("1 second")
    yield* Effect.forEach([...waiting.slice(1), next], Fiber.join, { discard: true })
  }))
