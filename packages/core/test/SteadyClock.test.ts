import { assert, describe, it } from "@effect/vitest"
import { SteadyClock } from "../src/kernel/SteadyClock.ts"

const second = 1000
const hour = 3_600_000

/** A clock that follows one which is `ahead` of what has passed; `after` lets time pass and asks every 10 seconds. */
const following = (ahead: number) => {
  let passed = 0
  const exact = (offset: number) => ({ least: offset, most: offset })
  const clock = new SteadyClock(() => passed, exact(ahead))
  return {
    clock,
    /** How far the clock is from the time that has passed. */
    get ahead() {
      return clock.currentTimeMillisUnsafe() - passed
    },
    after(seconds: number, offset: number) {
      let before = clock.currentTimeMillisUnsafe()
      for (let i = 1; i <= seconds; i++) {
        passed += second
        if (i % 10 === 0) clock.follow(exact(offset))
        const now = clock.currentTimeMillisUnsafe()
        assert.isAbove(now, before)
        before = now
      }
    }
  }
}

describe("SteadyClock", () => {
  it("does not notice a clock that jumps an hour and is back within a minute", () => {
    for (const jump of [hour, -hour]) {
      const server = following(20 * second)
      server.after(50, 20 * second + jump)
      assert.strictEqual(server.ahead, 20 * second)
      server.after(50, 20 * second)
      assert.strictEqual(server.ahead, 20 * second)
    }
  })

  it("follows small differences slowly, forwards and backwards", () => {
    const server = following(0)
    server.after(20, 3 * second)
    assert.strictEqual(server.ahead, second)
    server.after(60, 3 * second)
    assert.strictEqual(server.ahead, 3 * second)
    server.after(80, 0)
    assert.strictEqual(server.ahead, 0)
  })

  it("is set forwards when a clock stays ahead, as after a sleep of the machine, and never backwards", () => {
    const server = following(0)
    server.after(70, hour)
    assert.strictEqual(server.ahead, hour)
    server.after(70, 0)
    assert.strictEqual(server.ahead, hour)
    server.after(100, 0)
    assert.strictEqual(server.ahead, hour - 10 * second)
  })

  it("does not notice a jump ahead while it follows a clock that is far behind", () => {
    const server = following(0)
    server.after(100, -hour)
    const { ahead } = server
    server.after(10, hour)
    server.after(10, -hour)
    assert.isAtMost(server.ahead, ahead)
    server.after(70, hour)
    assert.strictEqual(server.ahead, hour)
  })

  it("stays as it is between the bounds that are known", () => {
    const clock = new SteadyClock(() => 0, { least: 40, most: 60 })
    clock.follow({ least: 45, most: 2000 })
    assert.strictEqual(clock.currentTimeMillisUnsafe(), 50)
    assert.strictEqual(clock.currentTimeNanosUnsafe(), 50_000_000n)
  })
})
