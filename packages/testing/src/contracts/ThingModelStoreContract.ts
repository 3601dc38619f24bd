/**
 * The laws of `ThingModelStore`.
 */
import {
  type DeviceCloud,
  emptyModel,
  keptVersions,
  type ModelVersion,
  ProductKey,
  ProductStore,
  type ThingModel,
  ThingModelStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertProduct } from "./Samples.ts"

const model: ThingModel = {
  properties: [{
    id: "t",
    name: "Temperature °",
    required: true,
    standard: false,
    desc: `with "quotes" and \\`,
    accessMode: "r",
    dataType: { type: "double", min: -40.5, max: 1e300, unit: "°C" }
  }],
  events: [],
  services: []
}

const version = (number: number, fields: Partial<ModelVersion> = {}): ModelVersion => ({
  version: number,
  model,
  createdAt: epoch + number,
  ...fields
})

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`ThingModelStore: ${name}`, (it) => {
    it.effect("has none for a product that never had a model", () =>
      Effect.gen(function*() {
        const store = yield* ThingModelStore
        const { productKey } = yield* insertProduct
        assert.isTrue(Option.isNone(yield* store.latest(productKey)))
        assert.deepStrictEqual(yield* store.history(productKey), [])
        assert.deepStrictEqual([...yield* store.versionsOf([productKey, ProductKey.make("missing")])], [])
      }))

    it.effect("takes versions one after the other only, and shows the latest", () =>
      Effect.gen(function*() {
        const store = yield* ThingModelStore
        const { productKey } = yield* insertProduct
        assert.isFalse(yield* store.insert(productKey, version(2)))
        assert.isTrue(yield* store.insert(productKey, version(1)))
        assert.isFalse(yield* store.insert(productKey, version(1, { model: emptyModel })))
        assert.isFalse(yield* store.insert(productKey, version(3)))
        assert.isTrue(yield* store.insert(productKey, version(2, { model: emptyModel })))
        assert.deepStrictEqual(yield* store.latest(productKey), Option.some(version(2, { model: emptyModel })))
        const { productKey: other } = yield* insertProduct
        assert.isTrue(yield* store.insert(other, version(1)))
        assert.deepStrictEqual(yield* store.versionsOf([productKey, other]), new Map([[productKey, 2], [other, 1]]))
        assert.isFalse(yield* store.insert(ProductKey.make("missing"), version(1)))
      }))

    it.effect("takes one of several versions of the same number", () =>
      Effect.gen(function*() {
        const store = yield* ThingModelStore
        const { productKey } = yield* insertProduct
        const taken = yield* Effect.all(Array.from({ length: 10 }, () => store.insert(productKey, version(1))), {
          concurrency: "unbounded"
        })
        assert.strictEqual(taken.filter(Boolean).length, 1)
      }))

    it.effect(`keeps the latest ${keptVersions} versions, newest first`, () =>
      Effect.gen(function*() {
        const store = yield* ThingModelStore
        const { productKey } = yield* insertProduct
        for (let i = 1; i <= keptVersions + 3; i++) yield* store.insert(productKey, version(i))
        const expected = Array.from({ length: keptVersions }, (_, i) => version(keptVersions + 3 - i))
        assert.deepStrictEqual(yield* store.history(productKey), expected)
      }))

    it.effect("forgets the models of a product with it", () =>
      Effect.gen(function*() {
        const store = yield* ThingModelStore
        const { productKey, projectId } = yield* insertProduct
        yield* store.insert(productKey, version(1))
        assert.strictEqual(yield* (yield* ProductStore).remove(projectId, productKey), "removed")
        assert.isTrue(Option.isNone(yield* store.latest(productKey)))
      }))
  })
