/**
 * The laws of `ProductStore`.
 */
import { type DeviceCloud, DeviceStore, ProductKey, ProductStore, ProjectId } from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import {
  epoch,
  insertDevices,
  insertProduct,
  insertProductOf,
  insertProject,
  newDevice,
  newProduct
} from "./Samples.ts"

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`ProductStore: ${name}`, (it) => {
    it.effect("keeps what was inserted and gives it a growing id", () =>
      Effect.gen(function*() {
        const store = yield* ProductStore
        const { id: projectId } = yield* insertProject
        const draft = newProduct(projectId, {
          nodeType: "gateway-sub",
          networkType: "",
          protocolType: "zigbee",
          dataSource: 3
        })
        const first = yield* insertProductOf(draft)
        const second = yield* insertProductOf(newProduct(projectId))
        assert.deepStrictEqual(first, { ...draft, id: first.id, previousSecret: null })
        assert.isTrue(first.id > 0 && second.id > first.id)
        assert.deepStrictEqual(yield* store.get(projectId, first.productKey), Option.some(first))
      }))

    it.effect("stores no product of a project that is not there", () =>
      Effect.gen(function*() {
        const store = yield* ProductStore
        const draft = newProduct(ProjectId.make("missing"))
        assert.strictEqual(yield* store.insert(draft), "no-project")
        assert.isTrue(Option.isNone(yield* store.find(draft.productKey)))
      }))

    it.effect("keeps the two latest secrets of a product", () =>
      Effect.gen(function*() {
        const store = yield* ProductStore
        const product = yield* insertProduct
        const { productKey, productSecret, projectId } = product
        const rotate = (secret: string, previousUntil: number | null, at: number) =>
          store.rotateSecret(projectId, productKey, { secret, previousUntil, at })
        for (const [secret, before, at] of [["second", productSecret, 1], ["third", "second", 2]] as const) {
          const previousSecret = { secret: before, until: epoch + 10 }
          const rotated = yield* rotate(secret, epoch + 10, epoch + at)
          const expected = { ...product, productSecret: secret, previousSecret, updatedAt: epoch + at }
          assert.deepStrictEqual(rotated, Option.some(expected))
          assert.deepStrictEqual(yield* store.find(productKey), rotated)
        }
        const last = Option.getOrThrow(yield* rotate("fourth", null, epoch + 3))
        assert.deepInclude(last, { productSecret: "fourth", previousSecret: null })
        const { id: stranger } = yield* insertProject
        const theft = { secret: "theft", previousUntil: null, at: epoch }
        assert.isTrue(Option.isNone(yield* store.rotateSecret(stranger, productKey, theft)))
        assert.deepStrictEqual(yield* store.list(projectId, { page: 1, pageSize: 10 }), { items: [last], total: 1 })
      }))

    it.effect("shows a product to its own project only", () =>
      Effect.gen(function*() {
        const store = yield* ProductStore
        const product = yield* insertProduct
        const { id: stranger } = yield* insertProject
        assert.isTrue(Option.isNone(yield* store.get(stranger, product.productKey)))
        assert.isFalse(yield* store.update(stranger, product.productKey, { name: "Stolen", updatedAt: epoch }))
        assert.strictEqual(yield* store.remove(stranger, product.productKey), "not-found")
        assert.deepStrictEqual(yield* store.list(stranger, { page: 1, pageSize: 10 }), { items: [], total: 0 })
        assert.deepStrictEqual(yield* store.get(product.projectId, product.productKey), Option.some(product))
      }))

    it.effect("changes exactly the given fields", () =>
      Effect.gen(function*() {
        const store = yield* ProductStore
        const product = yield* insertProduct
        const { productKey, projectId } = product
        assert.isTrue(yield* store.update(projectId, productKey, { status: "released", updatedAt: epoch + 1 }))
        const released = { ...product, status: "released" as const, updatedAt: epoch + 1 }
        assert.deepStrictEqual(yield* store.get(projectId, productKey), Option.some(released))
        const change = { name: "N", dynamicRegister: true, photoUrl: "", description: "", updatedAt: epoch + 2 }
        assert.isTrue(yield* store.update(projectId, productKey, change))
        assert.deepStrictEqual(yield* store.get(projectId, productKey), Option.some({ ...released, ...change }))
        assert.isFalse(yield* store.update(projectId, ProductKey.make("missing"), change))
        const signature = { uplinkSignature: "timestamped" as const, updatedAt: epoch + 3 }
        assert.isTrue(yield* store.update(projectId, productKey, signature))
        assert.isTrue(yield* store.update(projectId, productKey, { status: "developing", updatedAt: epoch + 3 }))
        const stored = Option.getOrThrow(yield* store.get(projectId, productKey))
        assert.deepInclude(stored, { name: "N", status: "developing", uplinkSignature: "timestamped" })
      }))

    it.effect("pages newest first, the same from both ends", () =>
      Effect.gen(function*() {
        const store = yield* ProductStore
        const { id: projectId } = yield* insertProject
        const inserted = yield* Effect.forEach([5, 1, 3, 3, 3, 2, 4], (minute) =>
          insertProductOf(newProduct(projectId, { createdAt: epoch + minute * 60_000 })))
        const expected = inserted.toSorted((a, b) =>
          b.createdAt - a.createdAt || b.id - a.id
        )
        for (const pageSize of [1, 2, 3, 7, 100]) {
          for (let page = 1; page <= 8; page++) {
            const { items, total } = yield* store.list(projectId, { page, pageSize })
            assert.deepStrictEqual(items, expected.slice((page - 1) * pageSize, page * pageSize))
            assert.strictEqual(total, 7)
          }
        }
      }))

    it.effect("keeps a product that has devices", () =>
      Effect.gen(function*() {
        const store = yield* ProductStore
        const product = yield* insertProduct
        const { productKey, projectId } = product
        const [device] = yield* insertDevices(product, [newDevice()])
        assert.strictEqual(yield* store.remove(projectId, productKey), "has-devices")
        yield* (yield* DeviceStore).remove(projectId, device!.deviceId)
        assert.strictEqual(yield* store.remove(projectId, productKey), "removed")
        assert.strictEqual(yield* store.remove(projectId, productKey), "not-found")
      }))

    it.effect("never leaves a device without product when both happen at once", () =>
      Effect.gen(function*() {
        const products = yield* ProductStore
        const devices = yield* DeviceStore
        for (let round = 0; round < 10; round++) {
          const { productKey, projectId } = yield* insertProduct
          const [removed, inserted] = yield* Effect.all([
            products.remove(projectId, productKey),
            devices.insertMany(projectId, productKey, [newDevice()])
          ], { concurrency: 2 })
          assert.strictEqual(Option.isSome(inserted), removed === "has-devices")
          assert.strictEqual(Option.isSome(yield* products.get(projectId, productKey)), removed === "has-devices")
        }
      }))
  })
