import { IdleCollection } from "@device-cloud/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { constants, PerformanceObserver } from "node:perf_hooks"

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

/** Longer than the process has worked by now, so that it counts as idle. */
const idle = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 1000)))

it.effect("a process that has grown and is idle collects garbage, once", () =>
  Effect.gen(function*() {
    yield* Layer.build(IdleCollection.layer)
    const collections = yield* forced
    const burst = Buffer.alloc(process.memoryUsage.rss() / 2, 1)
    yield* idle
    for (let i = 0; i < 3; i++) yield* TestClock.adjust("20 seconds")
    yield* idle
    assert.isAbove(burst.length, 0)
    assert.strictEqual(collections.count(), 1)
  }))
