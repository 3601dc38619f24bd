import { BulkCommandStore, CommandStore, ExecutionStore, JobStore, OtaStore, RecordDays } from "@device-cloud/core"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as RecordRetention from "../src/RecordRetention.ts"

const day = 86_400_000

it.effect("records go slice by slice once they are old, and a store that fails holds up no other", () =>
  Effect.gen(function*() {
    const old = new Map([["bulk", 0], ["commands", 2500], ["executions", 1], ["jobs", 1000], ["tasks", 0]])
    const befores = new Set<number>()
    let slices = 0
    const prune = (name: string) => ({ before, limit }: { readonly before: number; readonly limit: number }) =>
      Effect.sync(() => {
        befores.add(before)
        const removed = Math.min(limit, old.get(name)!)
        old.set(name, old.get(name)! - removed)
        if (removed > 0) slices++
        return removed
      })
    const stores = Layer.mergeAll(
      Layer.mock(BulkCommandStore, { prune: () => Effect.die("away") }),
      Layer.mock(CommandStore, { prune: prune("commands") }),
      Layer.mock(ExecutionStore, { prune: prune("executions") }),
      Layer.mock(JobStore, { prune: prune("jobs") }),
      Layer.mock(OtaStore, { pruneTasks: prune("tasks") })
    )
    yield* TestClock.setTime(100 * day)
    yield* Layer.build(
      RecordRetention.layer.pipe(Layer.provide(stores), Layer.provide(Layer.succeed(RecordDays, 30)))
    )
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual([...old.values()], [0, 0, 0, 0, 0])
    assert.deepStrictEqual([...befores], [70 * day])
    assert.strictEqual(slices, 5)
    // Later, what has become old goes, too.
    old.set("tasks", 1)
    yield* TestClock.adjust("10 minutes")
    assert.strictEqual(old.get("tasks"), 0)
  }))
