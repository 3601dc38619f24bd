import { IdleCollection } from "@device-cloud/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { constants, PerformanceObserver } from "node:perf_hooks"
import { versions } from "node:process"
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

/** Collections that somebody asked for. */
const forced = Effect.acquireRelease(
  Effect.sync(() => {
    const flags: Array<number> = []
    const observer = new PerformanceObserver((list) => {
      for (const { detail } of list.getEntries() as ReadonlyArray<{ readonly detail?: unknown }>) {
        flags.push((detail as { readonly flags: number }).flags)
      }
    })
    observer.observe({ entryTypes: ["gc"] })
    return { observer, count: () => flags.filter((each) => each & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED).length }
  }),
  ({ observer }) => Effect.sync(() => observer.disconnect())
)

/** So long that the process counts as idle. */
const idle = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 500)))

/** What other tests of this process have left is gone: a collection in the middle of a test would look like a process that shrinks. */
const settled = Effect.suspend(() => {
  setFlagsFromString("--expose-gc")
  const gc = runInNewContext("gc") as () => void
  gc()
  return idle
})

/** Lets the process look once. Returns how many collections it asks for: none, too, if the machine was too busy. */
const look = Effect.fnUntraced(function*(count: () => number) {
  const before = count()
  yield* TestClock.adjust("20 seconds")
  yield* idle
  return count() - before
})

/** Returns how many looks it takes until one asks for a collection. */
const looksUntilCollected = Effect.fnUntraced(function*(count: () => number) {
  for (let looks = 1; looks <= 30; looks++) {
    const asked = yield* look(count)
    assert.isAtMost(asked, 1)
    if (asked === 1) return looks
  }
  return assert.fail("no look asked for a collection")
})

it.effect("a process that has grown and is idle collects garbage, three times if that does not help", () =>
  Effect.gen(function*() {
    yield* settled
    yield* Layer.build(IdleCollection.layer)
    const { count } = yield* forced
    const burst = Buffer.alloc(process.memoryUsage.rss(), 1)
    // The burst itself may have taken most of the time until the first look.
    yield* idle
    yield* looksUntilCollected(count)
    assert.isAtLeast(yield* looksUntilCollected(count), 2)
    assert.isAtLeast(yield* looksUntilCollected(count), 4)
    for (let looks = 1; looks <= 8; looks++) assert.strictEqual(yield* look(count), 0)
    assert.isAbove(burst.length, 0)
  }))

it.effect("what a burst holds during a collection is given back when the burst has ended", () =>
  Effect.gen(function*() {
    yield* settled
    const before = process.memoryUsage.rss()
    yield* Layer.build(IdleCollection.layer)
    const { count } = yield* forced
    const burst = [Buffer.alloc(before, 1)]
    yield* idle
    yield* looksUntilCollected(count)
    burst.length = 0
    assert.isAtLeast(yield* looksUntilCollected(count), 2)
    assert.strictEqual(yield* look(count), 0)
    assert.isBelow(process.memoryUsage.rss(), 1.5 * before)
  }))

/** Bytes of the old part of the heap: all of its pages, and what is in use of them. */
const oldSpace = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space")!

// V8 of later versions keeps the pages.
it.effect.skipIf(Number.parseInt(versions.node) >= 22)(
  "pages that a burst has left nearly empty are given back",
  () =>
    Effect.gen(function*() {
      yield* settled
      yield* Layer.build(IdleCollection.layer)
      const burst = Array.from({ length: 1_000_000 }, (_, i) => ({ i, values: [i, i + 1] }))
      const kept = burst.filter((_, i) => i % 10 === 0)
      burst.length = 0
      yield* idle
      yield* TestClock.adjust("20 seconds")
      const { space_size, space_used_size } = oldSpace()
      assert.strictEqual(kept.length, 100_000)
      assert.isBelow(space_size, 1.5 * space_used_size)
    })
)
