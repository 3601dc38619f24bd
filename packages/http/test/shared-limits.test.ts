import { SharedCounts } from "@device-cloud/core"
import { RateLimits } from "@device-cloud/http"
import * as StorageMemory from "@device-cloud/storage-memory"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"

it.effect("requests of a project count on all servers", () =>
  Effect.gen(function*() {
    const server = Effect.map(
      Layer.build(Layer.fresh(
        RateLimits.layer({ project: "5:60" }).pipe(
          Layer.provide(SharedCounts.layer),
          Layer.provide(StorageMemory.layerNode)
        )
      )),
      Context.get(RateLimits)
    )
    const [one, two] = [yield* server, yield* server]
    for (let i = 0; i < 4; i++) yield* one.check("project", "project")
    yield* two.check("project", "another")
    yield* TestClock.adjust("1 second")
    yield* two.check("project", "project")
    const refused = yield* Effect.flip(two.check("project", "project"))
    assert.isAbove(refused.data.retry_after, 0)
    yield* TestClock.adjust("1 second")
    yield* Effect.flip(one.check("project", "project"))
    yield* one.check("project", "another")
    yield* TestClock.adjust("60 seconds")
    yield* one.check("project", "project")
  }).pipe(Effect.provide(StorageMemory.layerNodeBus), Effect.scoped))
