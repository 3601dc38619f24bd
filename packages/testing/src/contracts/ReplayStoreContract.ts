/**
 * The laws of `ReplayStore`.
 */
import { type DeviceCloud, DeviceId, maxRandoms, ReplayStore } from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { detached } from "./Detached.ts"
import { epoch, unique } from "./Samples.ts"

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`ReplayStore: ${name}`, (it) => {
    it.effect("marks a random once for as long as it is said", () =>
      Effect.gen(function*() {
        const store = yield* ReplayStore
        const [deviceId, other] = [DeviceId.make(unique("device")), DeviceId.make(unique("device"))]
        const use = (of: DeviceId, random: string, at: number) =>
          store.use({ deviceId: of, random, at: epoch + at, until: epoch + at + 100 })
        assert.strictEqual(yield* use(deviceId, "a", 0), "fresh")
        assert.strictEqual(yield* use(deviceId, "a", 100), "used")
        assert.strictEqual(yield* use(deviceId, "b", 100), "fresh")
        assert.strictEqual(yield* use(other, "a", 100), "fresh")
        assert.strictEqual(yield* use(deviceId, "a", 101), "fresh")
        assert.strictEqual(yield* use(deviceId, "a", 201), "used")
      }))

    it.effect("gives a random to one of many who use it at once", () =>
      Effect.gen(function*() {
        const store = yield* ReplayStore
        const deviceId = DeviceId.make(unique("device"))
        const use = store.use({ deviceId, random: "r", at: epoch, until: epoch + 1 })
        const outcomes = yield* Effect.all(Array.from({ length: 40 }, () => use), { concurrency: "unbounded" })
        assert.strictEqual(outcomes.filter((outcome) => outcome === "fresh").length, 1)
        assert.strictEqual(outcomes.filter((outcome) => outcome === "used").length, 39)
      }))

    it.effect("keeps so many of a device, and forgets what has ended", () =>
      Effect.gen(function*() {
        const store = yield* ReplayStore
        const deviceId = DeviceId.make(unique("device"))
        const use = (random: string, at: number) =>
          store.use({ deviceId, random, at: epoch + at, until: epoch + at + 1000 })
        yield* Effect.forEach(Array.from({ length: maxRandoms }), (_, i) => use(`r${i}`, 0), {
          concurrency: 64,
          discard: true
        })
        for (const at of [0, 0, 1000]) assert.strictEqual(yield* use("more", at), "full")
        assert.strictEqual(yield* use("r7", 0), "used")
        const other = DeviceId.make(unique("device"))
        const last = { deviceId: other, random: "more", until: epoch + 1001 }
        assert.strictEqual(yield* store.use({ ...last, at: epoch }), "fresh")
        assert.strictEqual(yield* use("more", 1001), "fresh")
        while (true) {
          const count = yield* store.prune({ endedBefore: epoch + 1001, limit: 800 })
          assert.isAtMost(count, 800)
          if (count < 800) break
        }
        assert.strictEqual(yield* use("more", 1001), "used")
        assert.strictEqual(yield* use("r7", 0), "fresh")
        assert.strictEqual(yield* store.use({ ...last, at: epoch + 1001 }), "used")
      }))

    it.effect("forgets a part at a time", () =>
      Effect.gen(function*() {
        const store = yield* ReplayStore
        const devices = [DeviceId.make(unique("device")), DeviceId.make(unique("device"))]
        // This time is earlier than the marks of other tests.
        const until = epoch - 1_000_000
        for (const deviceId of devices) {
          for (const random of ["a", "b"]) yield* store.use({ deviceId, random, at: until, until })
        }
        const prune = (endedBefore: number) => store.prune({ endedBefore, limit: 3 })
        assert.deepStrictEqual(
          [yield* prune(until), yield* prune(until + 1), yield* prune(until + 1), yield* prune(until + 1)],
          [0, 3, 1, 0]
        )
      }))
  })
