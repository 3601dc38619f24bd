import { StoreError, untilStored } from "@device-cloud/core"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"

const failure = (retryable: boolean) => new StoreError({ operation: "Store.call", retryable, cause: "away" })

describe("untilStored", () => {
  it.effect("tries again after pauses that double from 50 ms to 1 second", () =>
    Effect.gen(function*() {
      const calls: Array<number> = []
      const call = Effect.gen(function*() {
        calls.push(yield* Clock.currentTimeMillis)
        return calls.length < 8 ? yield* failure(true) : "stored"
      })
      const fiber = yield* Effect.forkChild(untilStored(call))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* Fiber.join(fiber), "stored")
      assert.deepStrictEqual(calls, [0, 50, 150, 350, 750, 1550, 2550, 3550])
    }))

  it.effect("fails with what does not pass", () =>
    Effect.gen(function*() {
      let calls = 0
      const error = yield* Effect.flip(untilStored(Effect.suspend(() => {
        calls++
        return Effect.fail(failure(false))
      })))
      assert.deepStrictEqual([error.retryable, calls], [false, 1])
    }))
})
