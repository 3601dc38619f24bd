import { IdleCollection } from "@device-cloud/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { constants, type EventLoopUtilization, performance, PerformanceObserver } from "node:perf_hooks"
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

/** Waits until the process has been idle for so much of the time since a look that the next one takes it for idle. */
const idleSince = (look: EventLoopUtilization) =>
  Effect.promise(async () => {
    do await new Promise((resolve) => setTimeout(resolve, 500))
    while (performance.eventLoopUtilization(look).utilization > 0.25)
  })

/** What other tests of this process have left is gone: a collection in the middle of a test would look like a process that shrinks. */
const settled = Effect.suspend(() => {
  setFlagsFromString("--expose-gc")
  const gc = runInNewContext("gc") as () => void
  gc()
  return idleSince(performance.eventLoopUtilization())
})

/** Returns how many collections each of so many looks asks for. */
const looks = Effect.fnUntraced(function*(times: number, count: () => number) {
  const counts: Array<number> = []
  for (let i = 0; i < times; i++) {
    const before = count()
    const look = performance.eventLoopUtilization()
    yield* TestClock.adjust("20 seconds")
    yield* idleSince(look)
    counts.push(count() - before)
  }
  return counts
})

it.effect("a process that has grown and is idle collects garbage, three times if that does not help", () =>
  Effect.gen(function*() {
    yield* settled
    const start = performance.eventLoopUtilization()
    yield* Layer.build(IdleCollection.layer)
    const { count } = yield* forced
    const burst = Buffer.alloc(process.memoryUsage.rss(), 1)
    // The burst itself may have taken most of the time until the first look.
    yield* idleSince(start)
    assert.deepStrictEqual(yield* looks(8, count), [1, 0, 1, 0, 0, 0, 1, 0])
    assert.isAbove(burst.length, 0)
  }))

it.effect("what a burst holds during a collection is given back when the burst has ended", () =>
  Effect.gen(function*() {
    yield* settled
    const before = process.memoryUsage.rss()
    const start = performance.eventLoopUtilization()
    yield* Layer.build(IdleCollection.layer)
    const { count } = yield* forced
    const burst = [Buffer.alloc(before, 1)]
    yield* idleSince(start)
    assert.deepStrictEqual(yield* looks(1, count), [1])
    burst.length = 0
    assert.deepStrictEqual(yield* looks(3, count), [0, 1, 0])
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
      const start = performance.eventLoopUtilization()
      yield* Layer.build(IdleCollection.layer)
      const burst = Array.from({ length: 1_000_000 }, (_, i) => ({ i, values: [i, i + 1] }))
      const kept = burst.filter((_, i) => i % 10 === 0)
      burst.length = 0
      yield* idleSince(start)
      yield* TestClock.adjust("20 seconds")
      const { space_size, space_used_size } = oldSpace()
      assert.strictEqual(kept.length, 100_000)
      assert.isBelow(space_size, 1.5 * space_used_size)
    })
)
