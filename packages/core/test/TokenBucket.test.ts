import { assert, describe, it } from "@effect/vitest"
import { TokenBuckets } from "../src/kernel/TokenBucket.ts"

describe("token buckets", () => {
  it("are full at first, empty after a burst, and fill up at their rate", () => {
    const bucket = new TokenBuckets({ burst: 2000, capacity: 10 }).of("device")
    const taken = Array.from({ length: 3000 }, () => {
      if (bucket.emptyFor(10_000) > 0) return 0
      bucket.take(1, 10_000)
      return 1
    }).reduce<number>((sum, count) => sum + count, 0)
    assert.strictEqual(taken, 2001)
    assert.strictEqual(bucket.emptyFor(10_000), 1)
    assert.strictEqual(bucket.emptyFor(10_001), 0)
    // Silence fills no more than one burst.
    bucket.take(2001, 1_000_000)
    assert.strictEqual(bucket.emptyFor(1_000_000), 1)
  })

  it("stay empty for longer when more is taken than there is", () => {
    const bucket = new TokenBuckets({ burst: 2000, capacity: 10 }).of("device")
    bucket.take(5000, 0)
    assert.deepStrictEqual([0, 2999, 3000].map((now) => bucket.emptyFor(now)), [3000, 1, 0])
  })

  it("are kept for the keys that were asked for last, in bounded number", () => {
    const buckets = new TokenBuckets({ burst: 2000, capacity: 8 })
    const busy = buckets.of("busy")
    const idle = buckets.of("idle")
    for (let i = 0; i < 100; i++) {
      buckets.of(`other${i}`)
      assert.strictEqual(buckets.of("busy"), busy)
    }
    assert.notStrictEqual(buckets.of("idle"), idle)
  })
})
