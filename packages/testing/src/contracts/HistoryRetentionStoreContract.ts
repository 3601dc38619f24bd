/**
 * The laws of `HistoryRetentionStore`.
 */
import { type DeviceCloud, HistoryRetentionStore, ProductKey, ProductStore } from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { insertProduct } from "./Samples.ts"

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`HistoryRetentionStore: ${name}`, (it) => {
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
        assert.isTrue(yield* store.put(productKey, null))
        assert.isTrue(yield* store.put(productKey, null))
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
  })
