import { assert, it } from "@effect/vitest"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { RateWindow } from "../src/kernel/RateWindow.ts"

const memoryInUse = (): number => {
  setFlagsFromString("--expose-gc")
  const collectGarbage = runInNewContext("gc") as () => void
  collectGarbage()
  return process.memoryUsage().heapUsed
}

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

it("a key holds no memory of the text that it was a part of", () => {
  const window = new RateWindow({ limit: 3, window: 100, capacity: 10_000 })
  const before = memoryInUse()
  for (let i = 0; i < 4000; i++) {
    const text = decodeURIComponent(`${i}%20has a name of its own/${"x".repeat(10_000)}`)
    window.hit(`192.0.2.1 ${/^[^/]+/.exec(text)![0]}`, 0)
  }
  assert.isBelow(memoryInUse() - before, 20_000_000)
  assert.strictEqual(window.count("192.0.2.1 7 has a name of its own", 50), 1)
})
