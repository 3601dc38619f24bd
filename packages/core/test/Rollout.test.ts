import { rolloutDelay } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** As it is stored: in whole milliseconds. */
const delays = (taskId: number, perMinute: number) =>
  Array.from({ length: 3 * perMinute + 1 }, (_, place) => Math.floor(rolloutDelay(taskId, place, perMinute)))

it.effect.prop("no minute of a roll-out has more devices than it may, wherever it begins", {
  taskId: between(1, 2 ** 31),
  perMinute: between(1, 500)
}, ({ perMinute, taskId }) =>
  Effect.sync(() => {
    const due = delays(taskId, perMinute)
    assert.strictEqual(due[0], 0)
    for (let place = perMinute; place < due.length; place++) {
      assert.isAtLeast(due[place]! - due[place - perMinute]!, 60_000)
    }
    // And hardly fewer: each is in its own slot of the minute.
    due.forEach((delay, place) => {
      assert.isAtLeast(delay, Math.floor(60_000 * place / perMinute))
      assert.isAtMost(delay, 60_000 * (place + 1) / perMinute)
    })
  }))

it("the devices of a roll-out do not march in step, nor do those of two tasks", () => {
  const gaps = (taskId: number) => {
    const due = delays(taskId, 60)
    return new Set(due.slice(1, 61).map((delay, i) => delay - due[i]!))
  }
  assert.isAbove(gaps(1).size, 2)
  assert.notDeepEqual(delays(1, 60), delays(2, 60))
})
