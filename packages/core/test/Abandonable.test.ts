import { abandonable } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"

it.effect("has the result, the failure and the defect of the work", () =>
  Effect.gen(function*() {
    const outcomes = [Effect.succeed(undefined), Effect.as(Effect.yieldNow, 1), Effect.fail("no"), Effect.die("broken")]
    for (const work of outcomes) {
      const [own, other] = [yield* Effect.exit(work), yield* Effect.exit(abandonable<unknown, string, never>(work))]
      assert.deepStrictEqual(Exit.map(other, String), Exit.map(own, String))
    }
  }))

it.effect("who waits leaves at once, and the work ends when it can", () =>
  Effect.gen(function*() {
    const begun = yield* Deferred.make<void>()
    const goesOn = yield* Deferred.make<void>()
    const ended = yield* Deferred.make<ReadonlyArray<string>>()
    const seen: Array<string> = []
    const work = Effect.uninterruptible(
      Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(goesOn)).pipe(
        Effect.tap(() => Effect.sync(() => seen.push("transaction")))
      )
    ).pipe(
      Effect.andThen(Effect.yieldNow),
      Effect.andThen(Effect.sync(() => seen.push("next"))),
      Effect.onInterrupt(() => Deferred.succeed(ended, seen))
    )
    // Also where the caller cannot be interrupted, as the server of HTTP.
    const waiting = yield* Effect.forkChild(
      Effect.uninterruptible(Effect.exit(abandonable(Effect.interruptible(work))))
    )
    yield* Deferred.await(begun)
    yield* Fiber.interrupt(waiting)
    assert.deepStrictEqual(seen, [])
    yield* Deferred.succeed(goesOn, undefined)
    assert.deepStrictEqual(yield* Deferred.await(ended), ["transaction"])
  }))

it.effect("work that begins where nothing can be interrupted is not interrupted there", () =>
  Effect.gen(function*() {
    const begun = yield* Deferred.make<void>()
    const goesOn = yield* Deferred.make<void>()
    const ended = yield* Deferred.make<void>()
    const work = Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(goesOn)).pipe(
      Effect.andThen(Deferred.succeed(ended, undefined))
    )
    const waiting = yield* Effect.forkChild(Effect.uninterruptible(Effect.exit(abandonable(work))))
    yield* Deferred.await(begun)
    yield* Fiber.interrupt(waiting)
    yield* Deferred.succeed(goesOn, undefined)
    yield* Deferred.await(ended)
  }))
