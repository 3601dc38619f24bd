/**
 * The laws of `ConfigurationStore`.
 */
import {
  ConfigurationStore,
  type DeviceCloud,
  DeviceStore,
  keptConfigurations,
  type NewConfiguration,
  ProductKey,
  ProductStore
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { assertPages, epoch, insertDevice, insertDevices, insertProduct, newDevice, unique } from "./Samples.ts"

const draft = (content = "{}"): NewConfiguration => ({
  configurationId: unique("c"),
  format: "json",
  content,
  size: content.length,
  sha256: "ab".repeat(32),
  url: "https://cloud.example.com/objects/x/configuration.json",
  createdAt: epoch
})

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`ConfigurationStore: ${name}`, (it) => {
    it.effect("counts the versions of each product and device, and keeps the latest", () =>
      Effect.gen(function*() {
        const store = yield* ConfigurationStore
        const [{ productKey }, { productKey: other }] = [yield* insertProduct, yield* insertProduct]
        const { stored: theirs } = Option.getOrThrow(yield* store.insert({ productKey: other }, draft("theirs")))
        assert.isTrue(Option.isNone(yield* store.insert({ productKey: ProductKey.make("missing") }, draft())))
        const count = keptConfigurations + 2
        const drafts = Array.from({ length: count }, (_, i) => draft(`{"°":${i}}`))
        const inserted = yield* Effect.forEach(
          drafts,
          (one) => Effect.map(store.insert({ productKey }, one), Option.getOrThrow),
          { concurrency: "unbounded" }
        )
        const stored = inserted.map(({ stored }) => stored)
        assert.deepStrictEqual(stored, drafts.map((one, i) => ({ ...one, version: stored[i]!.version })))
        const ordered = stored.toSorted((a, b) => a.version - b.version)
        assert.deepStrictEqual(ordered.map(({ version }) => version), Array.from({ length: count }, (_, i) => i + 1))
        assert.sameDeepMembers(inserted.flatMap(({ dropped }) => dropped), ordered.slice(0, 2))
        const kept = ordered.slice(2)
        assert.deepStrictEqual(yield* store.versions({ productKey }), kept.toReversed())
        assert.sameDeepMembers([...yield* store.remove({ productKey })], kept)
        assert.deepStrictEqual(yield* store.versions({ productKey }), [])
        assert.deepStrictEqual(yield* store.versions({ productKey: other }), [theirs])
      }))

    it.effect("prefers the configuration of the device to that of its product", () =>
      Effect.gen(function*() {
        const store = yield* ConfigurationStore
        const { device } = yield* insertDevice
        const { deviceId, productKey } = device
        assert.isTrue(Option.isNone(yield* store.current(device)))
        const [ofProduct, ofDevice] = [draft("1"), draft("°")]
        yield* store.insert({ deviceId }, ofDevice)
        yield* store.insert({ productKey }, draft("0"))
        yield* store.insert({ productKey }, ofProduct)
        assert.deepStrictEqual(yield* store.current(device), Option.some({ ...ofDevice, version: 1 }))
        yield* store.remove({ deviceId })
        assert.deepStrictEqual(yield* store.current(device), Option.some({ ...ofProduct, version: 2 }))
      }))

    it.effect("notes what devices know, and an offer does not take back that it is applied", () =>
      Effect.gen(function*() {
        const store = yield* ConfigurationStore
        const product = yield* insertProduct
        const [one, two] = yield* insertDevices(product, [newDevice(), newDevice()])
        const { device: stranger } = yield* insertDevice
        yield* store.note({ deviceId: stranger.deviceId, configurationId: "a", at: 1 })
        yield* store.note({ deviceId: one!.deviceId, configurationId: "a", at: 1 })
        yield* store.confirm(one!.deviceId, 2)
        yield* store.note({ deviceId: one!.deviceId, configurationId: "a", at: 3 })
        yield* store.note({ deviceId: two!.deviceId, configurationId: "a", at: 4 })
        yield* store.confirm(two!.deviceId, 5)
        yield* store.note({ deviceId: two!.deviceId, configurationId: "b", at: 6 })
        assert.deepStrictEqual(yield* store.progress(product.productKey, { page: 1, pageSize: 10 }), {
          items: [
            { deviceId: two!.deviceId, configurationId: "b", state: "offered", at: 6 },
            { deviceId: one!.deviceId, configurationId: "a", state: "applied", at: 2 }
          ],
          total: 2
        })
        // Those of one instant come by device id.
        const others = yield* insertDevices(product, Array.from({ length: 6 }, () => newDevice()))
        for (const { deviceId } of others) yield* store.note({ deviceId, configurationId: "b", at: 5 })
        const { items } = yield* store.progress(product.productKey, { page: 1, pageSize: 10 })
        assert.deepStrictEqual(items.map(({ deviceId }) => deviceId), [
          two!.deviceId,
          ...others.map(({ deviceId }) => deviceId).toSorted((a, b) => (a < b ? -1 : 1)),
          one!.deviceId
        ])
        yield* assertPages((page) => store.progress(product.productKey, page), items)
      }))

    it.effect("notes nothing of a device that confirms without an offer", () =>
      Effect.gen(function*() {
        const store = yield* ConfigurationStore
        const { device } = yield* insertDevice
        yield* store.insert({ deviceId: device.deviceId }, draft())
        yield* store.confirm(device.deviceId, 1)
        assert.strictEqual((yield* store.progress(device.productKey, { page: 1, pageSize: 10 })).total, 0)
      }))

    it.effect("forgets all with the device and the product", () =>
      Effect.gen(function*() {
        const store = yield* ConfigurationStore
        const { device } = yield* insertDevice
        const { deviceId, productKey, projectId } = device
        const ofDevice = draft()
        yield* store.insert({ deviceId }, ofDevice)
        yield* store.insert({ productKey }, draft())
        yield* store.note({ deviceId, configurationId: "a", at: 1 })
        assert.deepStrictEqual(yield* store.versions({ deviceId }), [{ ...ofDevice, version: 1 }])
        yield* (yield* DeviceStore).remove(projectId, deviceId)
        assert.deepStrictEqual(yield* store.versions({ deviceId }), [])
        assert.strictEqual((yield* store.progress(productKey, { page: 1, pageSize: 10 })).total, 0)
        yield* (yield* ProductStore).remove(projectId, productKey)
        assert.deepStrictEqual(yield* store.versions({ productKey }), [])
        assert.isTrue(Option.isNone(yield* store.insert({ deviceId }, draft())))
      }))
  })
