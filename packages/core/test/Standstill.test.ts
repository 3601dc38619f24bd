import { assert, it } from "@effect/vitest"
import { Clock, Effect, Latch } from "effect"
import * as Standstill from "../src/connection/Standstill.ts"

/** The time of the test, which stands still but for `pass`. Timers do not go off, as in a frozen process. */
const frozen = () => {
  let now = 1000
  const clock: Clock.Clock = Object.create(Clock.Clock.defaultValue(), {
    currentTimeMillisUnsafe: { value: () => now },
    sleep: { value: () => Effect.never }
  })
  return { clock, pass: (millis: number) => void (now += millis) }
}

it.live("after a standstill there is doubt until everything has been compared", () =>
  Effect.gen(function*() {
    const { clock, pass } = frozen()
    const compared = yield* Latch.make(false)
    let comparisons = 0
    const doubt = yield* Standstill.make(Effect.andThen(Effect.sync(() => comparisons++), compared.await)).pipe(
      Effect.provideService(Clock.Clock, clock)
    )
    assert.isUndefined(doubt())
    pass(900)
    assert.isUndefined(doubt(), "it was busy for a moment")
    pass(1000)
    const first = doubt()
    assert.isDefined(first)
    assert.isDefined(doubt(), "it is not over because it was asked for")
    yield* Effect.yieldNow
    // It stands still again while it compares: what was read before counts for nothing.
    pass(1000)
    assert.isDefined(doubt())
    yield* compared.open
    yield* first!
    assert.strictEqual(comparisons, 2)
    assert.isUndefined(doubt())
  }))
