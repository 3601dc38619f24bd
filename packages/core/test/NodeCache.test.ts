import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as NodeCache from "../src/kernel/NodeCache.ts"

/** A cache of what `stored` holds, which counts what it loads. */
const make = Effect.fnUntraced(function*(options: { readonly capacity?: number } = {}) {
  const stored = new Map([["a", 1], ["b", 2], ["c", 3]])
  const loaded: Array<ReadonlyArray<string>> = []
  const cache = yield* NodeCache.make({
    capacity: options.capacity ?? 10,
    timeToLive: 1000,
    load: (keys: ReadonlyArray<string>) =>
      Effect.sync(() => {
        loaded.push(keys)
        return new Map(keys.flatMap((key) => stored.has(key) ? [[key, stored.get(key)!] as const] : []))
      })
  })
  return { cache, stored, loaded }
})

it.effect("loads what is not fresh, in one call", () =>
  Effect.gen(function*() {
    const { cache, loaded } = yield* make()
    yield* cache.get(["a"])
    assert.deepStrictEqual(yield* cache.get(["a", "b", "missing"]), new Map([["a", 1], ["b", 2]]))
    assert.deepStrictEqual(loaded, [["a"], ["b", "missing"]])
  }))

it.effect("loads again what is forgotten, too old, or may have changed", () =>
  Effect.gen(function*() {
    const { cache, stored } = yield* make()
    for (
      const [value, change] of [
        [10, Effect.sync(() => cache.forget("a"))],
        [11, Effect.sync(cache.forgetAll)],
        [12, TestClock.adjust("1 second")]
      ] as const
    ) {
      yield* cache.get(["a"])
      stored.set("a", value)
      yield* change
      assert.isUndefined(cache.fresh("a"))
      assert.deepStrictEqual(yield* cache.get(["a"]), new Map([["a", value]]))
    }
  }))

it.effect("keeps the last value until it is loaded again, unless it is forgotten", () =>
  Effect.gen(function*() {
    const { cache } = yield* make()
    yield* cache.get(["a", "b"])
    cache.forgetAll()
    assert.strictEqual(cache.last("a"), 1)
    cache.forget("b")
    assert.isUndefined(cache.last("b"))
  }))

it.effect("does not keep what was being loaded while it was forgotten", () =>
  Effect.gen(function*() {
    const gate = yield* Deferred.make<void>()
    const cache = yield* NodeCache.make({
      capacity: 10,
      timeToLive: 1000,
      load: (keys: ReadonlyArray<string>) => Effect.as(Deferred.await(gate), new Map(keys.map((key) => [key, 1])))
    })
    const getting = yield* Effect.forkChild(cache.get(["a"]))
    yield* Effect.yieldNow
    cache.forget("a")
    yield* Deferred.succeed(gate, undefined)
    assert.deepStrictEqual(yield* Fiber.join(getting), new Map([["a", 1]]))
    assert.isUndefined(cache.fresh("a"))
  }))

it.effect("keeps no more than its capacity, the latest", () =>
  Effect.gen(function*() {
    const { cache } = yield* make({ capacity: 2 })
    for (const key of ["a", "b", "c"]) yield* cache.get([key])
    assert.deepStrictEqual(["a", "b", "c"].map(cache.fresh), [undefined, 2, 3])
  }))
