/**
 * The laws of `HistoryRetentionStore`.
 */
import { type DeviceCloud, HistoryRetentionStore, HistoryStore, ProductKey, ProductStore } from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Clock, Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { insertDevice, insertProduct } from "./Samples.ts"

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores), { excludeTestServices: true })(`HistoryRetentionStore: ${name}`, (it) => {
    it.effect("keeps the days of a product until they are removed", () =>
      Effect.gen(function*() {
        const store = yield* HistoryRetentionStore
        const { productKey } = yield* insertProduct
        const { productKey: other } = yield* insertProduct
        assert.deepStrictEqual(yield* store.get(productKey), Option.none())
        assert.isTrue(yield* store.put(productKey, 30))
        assert.isTrue(yield* store.put(productKey, 3650))
        assert.deepStrictEqual(yield* store.get(productKey), Option.some(3650))
        assert.deepStrictEqual(yield* store.get(other), Option.none())
        assert.isTrue(yield* store.put(other, 60))
        assert.isTrue(yield* store.put(productKey, null))
        assert.isTrue(yield* store.put(productKey, null))
        assert.deepStrictEqual(yield* store.get(other), Option.some(60))
        assert.deepStrictEqual(yield* store.get(productKey), Option.none())
      }))

    it.effect("knows no days of a product that is not there, and forgets them with the product", () =>
      Effect.gen(function*() {
        const store = yield* HistoryRetentionStore
        const missing = ProductKey.make("missing")
        assert.isFalse(yield* store.put(missing, 30))
        assert.isFalse(yield* store.put(missing, null))
        assert.deepStrictEqual(yield* store.get(missing), Option.none())
        const { productKey, projectId } = yield* insertProduct
        yield* store.put(productKey, 30)
        yield* (yield* ProductStore).remove(projectId, productKey)
        assert.deepStrictEqual(yield* store.get(productKey), Option.none())
      }))

    it.effect("lets the history of a device be kept for the days of its product", () =>
      Effect.gen(function*() {
        const store = yield* HistoryRetentionStore
        const history = yield* HistoryStore
        const [shorter, other, longer] = [yield* insertDevice, yield* insertDevice, yield* insertDevice]
        yield* store.put(shorter.product.productKey, 10)
        yield* store.put(longer.product.productKey, 0)
        const [day, now] = [86_400_000, yield* Clock.currentTimeMillis]
        const times = [now - 40 * day, now - 20 * day, now]
        yield* history.prune({ keepDays: 30 })
        yield* history.append([shorter, other, longer].map(({ device: { deviceId } }) => ({
          deviceId,
          samples: times.map((time) => ({ propertyId: "t", time, value: 1 })),
          events: times.map((time) => ({ eventId: "e", time, value: 1 }))
        })))
        yield* history.prune({ keepDays: 30 })
        const kept = ({ device: { deviceId } }: typeof other) =>
          Effect.gen(function*() {
            const range = { start: 0, end: now, limit: 10, order: "asc" } as const
            const samples = yield* history.samples(deviceId, "t", range)
            const events = yield* history.events(deviceId, "e", range)
            assert.deepStrictEqual(events.map(({ time }) => time), samples.map(({ time }) => time))
            return samples.map(({ time }) => time)
          })
        assert.deepStrictEqual(yield* kept(shorter), times.slice(2))
        assert.deepStrictEqual(yield* kept(other), times.slice(1))
        assert.deepStrictEqual(yield* kept(longer), times)
      }))
  })
