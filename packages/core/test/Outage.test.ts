import { Outage } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Cause, Effect, Logger } from "effect"

it.effect("a failure is logged if it says what none before it has said, and after a success", () =>
  Effect.gen(function*() {
    const logged: Array<unknown> = []
    const log = Logger.layer([Logger.make(({ message }) => void logged.push([message].flat()[1]))])
    const outage = Outage.make("It is away")
    const wrapped = (reason: string) => new Error("failed", { cause: new Error(reason) })
    const [one, two, three] = [wrapped("away"), wrapped("refused"), wrapped("refused")]
    yield* Effect.gen(function*() {
      assert.isFalse(yield* outage.over)
      yield* Effect.forEach([one, wrapped("away"), two, Cause.fail(wrapped("refused")), wrapped("away")], outage.failed)
      assert.isTrue(yield* outage.over)
      assert.isFalse(yield* outage.over)
      yield* outage.failed(three)
    }).pipe(Effect.provide(log))
    assert.deepStrictEqual(logged, [one, two, three])
  }))

it.effect("attempts that fail or die are logged as one outage until one succeeds", () =>
  Effect.gen(function*() {
    const logged: Array<unknown> = []
    const log = Logger.layer([Logger.make(({ message }) => void logged.push([message].flat()[1]))])
    const outage = Outage.make("It is away")
    const away = new Error("away")
    const attempts = [Effect.fail(away), Effect.fail(away), Effect.die(away), Effect.void, Effect.fail(away)]
    yield* Effect.forEach(attempts, outage.attempted).pipe(Effect.provide(log))
    assert.deepStrictEqual(logged, [away, away])
  }))
