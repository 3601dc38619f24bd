/**
 * The laws of `FeedReaderStore`.
 */
import { FeedReaderStore, feedStart } from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { unique } from "./Samples.ts"

/** Milliseconds: longer than a test takes. */
const long = 600_000

/** Runs the laws of the port. The store may stand alone. */
export const suite = <E>(name: string, stores: Layer.Layer<FeedReaderStore, E>): void =>
  layer(detached(stores), { excludeTestServices: true })(`FeedReaderStore: ${name}`, (it) => {
    it.effect("lets one of many claim a reader, from before all events on", () =>
      Effect.gen(function*() {
        const store = yield* FeedReaderStore
        const claim = store.claim({ name: unique("reader"), leaseMillis: long })
        const claims = yield* Effect.all(Array.from({ length: 20 }, () => claim), { concurrency: "unbounded" })
        const [held, ...others] = claims.filter(Option.isSome)
        assert.lengthOf(others, 0)
        assert.strictEqual(held!.value.place, feedStart)
        assert.deepStrictEqual(yield* claim, Option.none())
        assert.isTrue(Option.isSome(yield* store.claim({ name: unique("reader"), leaseMillis: long })))
      }))

    it.effect("keeps the place for whoever claims the reader next", () =>
      Effect.gen(function*() {
        const store = yield* FeedReaderStore
        const name = unique("reader")
        const first = Option.getOrThrow(yield* store.claim({ name, leaseMillis: 0 }))
        assert.isTrue(yield* store.advance({ ...first, name, place: "0a", leaseMillis: 0 }))
        const second = Option.getOrThrow(yield* store.claim({ name, leaseMillis: 0 }))
        assert.strictEqual(second.place, "0a")
        assert.isAbove(second.epoch, first.epoch)
      }))

    it.effect("lets a former holder change nothing", () =>
      Effect.gen(function*() {
        const store = yield* FeedReaderStore
        const name = unique("reader")
        const former = Option.getOrThrow(yield* store.claim({ name, leaseMillis: 0 }))
        const holder = Option.getOrThrow(yield* store.claim({ name, leaseMillis: long }))
        assert.isFalse(yield* store.advance({ ...former, name, place: "0b", leaseMillis: 0 }))
        yield* store.release({ ...former, name })
        assert.deepStrictEqual(yield* store.claim({ name, leaseMillis: long }), Option.none())
        assert.isTrue(yield* store.advance({ ...holder, name, place: "0a", leaseMillis: 0 }))
        assert.strictEqual(Option.getOrThrow(yield* store.claim({ name, leaseMillis: 0 })).place, "0a")
        assert.isFalse(yield* store.advance({ ...former, name: unique("reader"), place: "0b", leaseMillis: 0 }))
      }))

    it.effect("prolongs the lease with each advance, and never moves a place back", () =>
      Effect.gen(function*() {
        const store = yield* FeedReaderStore
        const name = unique("reader")
        const held = Option.getOrThrow(yield* store.claim({ name, leaseMillis: 0 }))
        assert.isTrue(yield* store.advance({ ...held, name, place: "0B", leaseMillis: 0 }))
        assert.isTrue(yield* store.advance({ ...held, name, place: "0A", leaseMillis: long }))
        assert.deepStrictEqual(yield* store.claim({ name, leaseMillis: long }), Option.none())
        assert.isTrue(yield* store.advance({ ...held, name, place: "0a", leaseMillis: 0 }))
        assert.isTrue(yield* store.advance({ ...held, name, place: "0B", leaseMillis: 0 }))
        assert.strictEqual(Option.getOrThrow(yield* store.claim({ name, leaseMillis: 0 })).place, "0a")
      }))

    it.effect("lets a holder go on whose lease has ended, until another claims the reader", () =>
      Effect.gen(function*() {
        const store = yield* FeedReaderStore
        const name = unique("reader")
        const held = Option.getOrThrow(yield* store.claim({ name, leaseMillis: long }))
        assert.isTrue(yield* store.advance({ ...held, name, leaseMillis: -1 }))
        assert.isTrue(yield* store.advance({ ...held, name, leaseMillis: long }))
        assert.deepStrictEqual(yield* store.claim({ name, leaseMillis: long }), Option.none())
      }))

    it.effect("can be claimed at once when its holder has released it", () =>
      Effect.gen(function*() {
        const store = yield* FeedReaderStore
        const name = unique("reader")
        const held = Option.getOrThrow(yield* store.claim({ name, leaseMillis: long }))
        yield* store.advance({ ...held, name, place: "0a", leaseMillis: long })
        const other = unique("reader")
        assert.strictEqual(Option.getOrThrow(yield* store.claim({ name: other, leaseMillis: long })).epoch, held.epoch)
        yield* store.release({ ...held, name })
        assert.deepStrictEqual(yield* store.claim({ name: other, leaseMillis: long }), Option.none())
        const next = Option.getOrThrow(yield* store.claim({ name, leaseMillis: long }))
        assert.strictEqual(next.place, "0a")
        assert.isAbove(next.epoch, held.epoch)
        assert.isFalse(yield* store.advance({ ...held, name, leaseMillis: long }))
      }))

    it.effect("can be claimed if its lease lasts longer than a new one: a clock that was wrong gave it", () =>
      Effect.gen(function*() {
        const store = yield* FeedReaderStore
        const name = unique("reader")
        const former = Option.getOrThrow(yield* store.claim({ name, leaseMillis: 2 * long }))
        const holder = Option.getOrThrow(yield* store.claim({ name, leaseMillis: long }))
        assert.isAbove(holder.epoch, former.epoch)
      }))
  })
