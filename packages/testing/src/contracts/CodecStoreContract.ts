/**
 * The laws of `CodecStore`.
 */
import { type CodecDescription, CodecStore, type DeviceCloud, ProductKey, ProductStore } from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertProduct } from "./Samples.ts"

const description: CodecDescription = {
  reports: [{
    name: `with "quotes" and °`,
    method: "thing.event.property.post",
    parts: [{ type: "uint", size: 2, scale: 0.1, labels: { 0: "off" }, to: "params.level" }]
  }]
}

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`CodecStore: ${name}`, (it) => {
    it.effect("has none for a product that never had one", () =>
      Effect.gen(function*() {
        const store = yield* CodecStore
        const { productKey } = yield* insertProduct
        const missing = ProductKey.make("missing")
        assert.isTrue(Option.isNone(yield* store.get(productKey)))
        assert.isTrue(Option.isNone(yield* store.put(missing, description, epoch)))
        assert.deepStrictEqual([...yield* store.versionsOf([productKey, missing])], [])
      }))

    it.effect("counts versions also over removals, one for each of several changes", () =>
      Effect.gen(function*() {
        const store = yield* CodecStore
        const { productKey } = yield* insertProduct
        const first = { version: 1, description, updatedAt: epoch }
        assert.deepStrictEqual(yield* store.put(productKey, description, epoch), Option.some(first))
        assert.deepStrictEqual(yield* store.get(productKey), Option.some(first))
        const removed = { version: 2, description: null, updatedAt: epoch + 1 }
        assert.deepStrictEqual(yield* store.put(productKey, null, epoch + 1), Option.some(removed))
        assert.deepStrictEqual(yield* store.get(productKey), Option.some(removed))
        const puts = yield* Effect.all(Array.from({ length: 5 }, () => store.put(productKey, description, epoch)), {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual(puts.map((put) => Option.getOrThrow(put).version).toSorted(), [3, 4, 5, 6, 7])
        const { productKey: other } = yield* insertProduct
        yield* store.put(other, description, epoch)
        assert.deepStrictEqual(yield* store.versionsOf([productKey, other]), new Map([[productKey, 7], [other, 1]]))
      }))

    it.effect("forgets the codec of a product with it", () =>
      Effect.gen(function*() {
        const store = yield* CodecStore
        const { productKey, projectId } = yield* insertProduct
        yield* store.put(productKey, description, epoch)
        assert.strictEqual(yield* (yield* ProductStore).remove(projectId, productKey), "removed")
        assert.isTrue(Option.isNone(yield* store.get(productKey)))
      }))
  })
