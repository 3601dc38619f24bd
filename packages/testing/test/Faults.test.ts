import {
  defaultProjectId,
  DeviceCloud,
  DeviceId,
  HistoryStore,
  Products,
  ShadowStore,
  StoreError
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { CloudState, Faults, Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Effect, Exit, Fiber, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"

const withFaults = (seed: number, ...faults: ReadonlyArray<Faults.Fault>) =>
  Faults.layer({ seed, faults }).pipe(Layer.provide(StorageMemory.layer), Layer.provide(PlatformNode.layer))

const read = Effect.flatMap(ShadowStore, (shadows) => shadows.get(DeviceId.make("none")))

/** Which of the next calls fail: x. */
const fates = (count: number) =>
  Effect.map(
    Effect.forEach(Array.from({ length: count }), () => Effect.result(read)),
    (results) => results.map(({ _tag }) => _tag === "Failure" ? "x" : ".").join("")
  )

const cloudWith = (...faults: ReadonlyArray<Faults.Fault>) =>
  DeviceCloud.layer.pipe(
    Layer.provide(withFaults(7, ...faults)),
    Layer.provideMerge(PlatformNode.layer)
  )

describe("faults of the storage", () => {
  it.effect("hit by chance, in the same way with the same seed", () =>
    Effect.gen(function*() {
      const run = (seed: number) => Effect.provide(fates(100), withFaults(seed, { does: "fail", probability: 0.3 }))
      const first = yield* run(7)
      assert.strictEqual(yield* run(7), first)
      assert.notStrictEqual(yield* run(8), first)
      assert.isAbove(first.replaceAll(".", "").length, 15)
      assert.isBelow(first.replaceAll(".", "").length, 45)
    }))

  it.effect("hit the methods, calls and times that are named", () =>
    Effect.gen(function*() {
      const others = withFaults(1, { on: ["UplinkStore", "ShadowStore.modify"], does: "fail" })
      assert.strictEqual(yield* Effect.provide(fates(3), others), "...")
      const third = withFaults(1, { on: "ShadowStore.get", does: "fail", calls: (n) => n % 3 === 0 })
      assert.strictEqual(yield* Effect.provide(fates(6), third), "..x..x")
      yield* Effect.gen(function*() {
        assert.strictEqual(yield* fates(1), ".")
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* fates(1), "x")
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* fates(1), ".")
      }).pipe(Effect.provide(withFaults(1, { does: "fail", during: ["1 minute", "2 minutes"] })))
    }))

  it.effect("are refused when they could hit nothing", () =>
    Effect.gen(function*() {
      const why = (fault: object) =>
        Effect.map(
          Effect.exit(Effect.provide(read, withFaults(1, { does: "fail" }, fault as Faults.Fault))),
          (exit) => Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : ""
        )
      for (const on of ["ShadowStor", "ShadowStore.gets", "NodeBus", ["ShadowStore", "get"]]) {
        assert.match(
          yield* why({ does: "fail", on }),
          /^TypeError: faults\[1\]\.on: expected a store or one of its methods, .*, not (ShadowStor|.*gets|NodeBus|get)$/
        )
      }
      for (const probability of [-0.1, 2, Number.NaN]) {
        assert.strictEqual(
          yield* why({ does: "fail", probability }),
          `TypeError: faults[1].probability: expected a number from 0 to 1, not ${probability}`
        )
      }
      for (const during of [["2 minutes", "1 minute"], ["1 minute", "1 minute"]]) {
        assert.match(
          yield* why({ does: "fail", during }),
          /^TypeError: faults\[1\]\.during: expected an end after the beginning, not .* and 1m$/
        )
      }
    }))

  it.effect("hit what a store returns as a stream", () =>
    Effect.gen(function*() {
      const scan = Effect.flatMap(
        HistoryStore,
        (store) => Stream.runCollect(store.scan(DeviceId.make("none"), { start: 0, end: 1, propertyIds: undefined }))
      )
      const error = yield* Effect.flip(scan)
      assert.deepInclude(error, { _tag: "StoreError", operation: "HistoryStore.scan" })
      assert.deepStrictEqual(yield* scan, [])
    }).pipe(Effect.provide(withFaults(1, { on: "HistoryStore.scan", does: "fail", calls: (n) => n === 1 }))))

  it.effect("delay calls, or keep them", () =>
    Effect.gen(function*() {
      yield* Effect.gen(function*() {
        const start = yield* Clock.currentTimeMillis
        const slow = yield* Effect.forkChild(Effect.andThen(read, Clock.currentTimeMillis))
        yield* TestClock.adjust("5 seconds")
        assert.strictEqual((yield* Fiber.join(slow)) - start, 2000)
      }).pipe(Effect.provide(withFaults(1, { does: { delay: "2 seconds" } })))
      yield* Effect.gen(function*() {
        const kept = yield* Effect.forkChild(read)
        yield* TestClock.adjust("1 hour")
        assert.isUndefined(kept.pollUnsafe())
      }).pipe(Effect.provide(withFaults(1, { does: "hang" })))
    }))

  it.effect("are retried or not, as they say", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(read)
      assert.instanceOf(error, StoreError)
      assert.deepInclude(error, { operation: "ShadowStore.get", retryable: false })
    }).pipe(Effect.provide(withFaults(1, { does: "fail", retryable: false }))))

  it.effect("fail before the commit, or after it: then it has had its effect all the same", () =>
    Effect.gen(function*() {
      const created = (does: "fail" | "loseAnswer") =>
        Effect.gen(function*() {
          const error = yield* Effect.flip(Fixtures.createProduct())
          assert.deepInclude(error, { _tag: "StoreError", operation: "ProductStore.insert" })
          return (yield* (yield* Products).list(defaultProjectId, { page: 1, pageSize: 10 })).total
        }).pipe(Effect.provide(cloudWith({ on: "ProductStore.insert", does, retryable: false })))
      assert.strictEqual(yield* created("fail"), 0)
      assert.strictEqual(yield* created("loseAnswer"), 1)
    }))

  it.effect("lose the answer to a commit: the report is committed again before the device has its reply", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const connected = yield* SimulatedDevice.connect(device)
      const posted = yield* Effect.forkChild(connected.postProperties({ power: 1 }))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(posted)).code, 200)
      assert.deepStrictEqual(yield* CloudState.samples(device, "power"), [1, 1])
    }).pipe(Effect.provide(cloudWith({ on: "UplinkStore.commit", does: "loseAnswer", calls: (n) => n === 1 }))))

  it.effect("leave nothing that was acknowledged behind", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const connected = yield* SimulatedDevice.connect(device)
      const posted = yield* Effect.forkChild(
        Effect.forEach([1, 2, 3, 4, 5], (power) => connected.postProperties({ power }))
      )
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual((yield* Fiber.join(posted)).map(({ code }) => code), [200, 200, 200, 200, 200])
      assert.deepStrictEqual(yield* CloudState.samples(device, "power"), [1, 2, 3, 4, 5])
    }).pipe(Effect.provide(cloudWith({ on: "UplinkStore.commit", does: "fail", calls: (n) => n % 2 === 1 }))))
})
