import { assert, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import * as Periodic from "../src/kernel/Periodic.ts"

it.effect("who looks for what ends knows for a minute that the node has begun, or has failed", () =>
  Effect.gen(function*() {
    const seconds: Array<number> = []
    let fails = false
    yield* Periodic.lookingForEnds("It failed", (isBack) =>
      Effect.gen(function*() {
        if (isBack) seconds.push((yield* Clock.currentTimeMillis) / 1000)
        if (fails) return yield* Effect.fail("away")
      }))
    const span = () => [seconds[0], seconds.splice(0).at(-1)]
    yield* TestClock.adjust("200 seconds")
    assert.deepStrictEqual(span(), [0, 59])
    fails = true
    yield* TestClock.adjust("1 second")
    fails = false
    yield* TestClock.adjust("199 seconds")
    assert.deepStrictEqual(span(), [205, 264])
  }))

it.effect("what is done again and again goes on after it has died", () =>
  Effect.gen(function*() {
    let rounds = 0
    yield* Periodic.every("1 second")(Effect.sync(() => {
      if (++rounds === 2) throw new Error("a store throws")
    }))
    yield* TestClock.adjust("4 seconds")
    assert.strictEqual(rounds, 5)
  }))
