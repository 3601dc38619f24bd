import { eventually, eventuallyPromise } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"

/** Counts its calls. */
const counter = () => {
  let calls = 0
  return () => ++calls
}

it.live("repeats a check that fails, throws, or has another value", () =>
  Effect.gen(function*() {
    const count = counter()
    const check = Effect.suspend(() => {
      const calls = count()
      if (calls === 1) return Effect.fail("not yet")
      if (calls === 2) throw new Error("not yet")
      return Effect.succeed(calls)
    })
    assert.strictEqual(yield* eventually(check, { until: (calls) => calls >= 4 }), 4)
  }))

it.live("fails with the last error of the check", () =>
  Effect.gen(function*() {
    const count = counter()
    const check = Effect.suspend(() => Effect.fail(count()))
    const error = yield* Effect.flip(eventually(check, { timeout: "50 millis" }))
    assert.strictEqual(error, count() - 1)
  }))

it.live("says which value it has in place of the one that is waited for", () =>
  Effect.gen(function*() {
    const { message } = yield* Effect.succeed({ status: "online" }).pipe(
      (status) => eventually(status, { until: ({ status }) => status === "offline", timeout: "50 millis" }),
      Effect.sandbox,
      Effect.flip,
      Effect.map((cause) =>
        cause.reasons.flatMap((reason) => reason._tag === "Die" ? [reason.defect as Error] : [])[0]!
      )
    )
    assert.strictEqual(message, `After 50ms, the value is still {"status":"online"}`)
  }))

it.live("gives up a check that does not end", () =>
  Effect.gen(function*() {
    const exit = yield* Effect.exit(eventually(Effect.never, { timeout: "50 millis" }))
    assert.include(String(exit), "the check has not ended")
  }))

it("has a form for promises", async () => {
  const count = counter()
  const check = async () => {
    const calls = count()
    if (calls < 3) throw new Error(`call ${calls}`)
    return calls
  }
  assert.strictEqual(await eventuallyPromise(check), 3)
  const broken = () => {
    throw new Error("broken")
  }
  const refused = await eventuallyPromise(broken, { timeout: 20 }).then(() => "fulfilled", String)
  assert.strictEqual(refused, "Error: broken")
})
