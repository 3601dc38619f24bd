import { assert, it } from "@effect/vitest"
import { RateWindow } from "../src/kernel/RateWindow.ts"

it("the limit is reached by so many hits within the window, and lasts as long as the window", () => {
  const window = new RateWindow({ limit: 3, window: 100, capacity: 10 })
  assert.deepStrictEqual([0, 50, 101, 140].map((now) => window.hit("a", now)), [false, false, false, true])
  assert.strictEqual(window.fullUntil("a"), 240)
  assert.strictEqual(window.fullUntil("b"), 0)
  window.forget("a")
  assert.strictEqual(window.fullUntil("a"), 0)
})

it("of more keys than its capacity, the one whose last hit is longest ago is forgotten", () => {
  const window = new RateWindow({ limit: 1, window: 100, capacity: 2 })
  for (const key of ["a", "b", "a", "c"]) window.hit(key, 0)
  assert.deepStrictEqual(["a", "b", "c"].map((key) => window.fullUntil(key)), [100, 0, 100])
})
