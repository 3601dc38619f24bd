/**
 * The laws of `ShadowStore`.
 */
import { type DeviceCloud, DeviceId, emptyShadow, type Json, type Shadow, ShadowStore } from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertDevice, insertDevices, insertProduct, newDevice } from "./Samples.ts"

const report = (property: string, value: Json, time = epoch) => (shadow: Shadow) =>
  [
    shadow.version,
    {
      ...shadow,
      version: shadow.version + 1,
      reported: { ...shadow.reported, [property]: { value, time } },
      updatedAt: time
    }
  ] as const

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void =>
  layer(detached(stores))(`ShadowStore: ${name}`, (it) => {
    it.effect("has the empty shadow for a device of which nothing is stored", () =>
      Effect.gen(function*() {
        const store = yield* ShadowStore
        const { device: { deviceId } } = yield* insertDevice
        assert.deepStrictEqual(yield* store.get(deviceId), Option.some(emptyShadow(deviceId)))
      }))

    it.effect("keeps every JSON value exactly", () =>
      Effect.gen(function*() {
        const store = yield* ShadowStore
        const { device: { deviceId } } = yield* insertDevice
        const values: ReadonlyArray<Json> = [
          0,
          -1.5e-300,
          2 ** 53,
          true,
          null,
          "",
          "NUL \u0000, half a pair \ud800, ' \" \\ $1 é 漢 😀",
          [],
          {},
          [1, [2, { three: ["4"] }]],
          { "": 1, "a.b": { "c d": null }, constructor: "x" }
        ]
        const reported = Object.fromEntries(values.map((value, i) => [`p${i}`, { value, time: epoch + i }]))
        const shadow: Shadow = {
          deviceId,
          version: 2 ** 50,
          reported,
          desired: { mode: { value: "eco", time: epoch } },
          updatedAt: epoch + 123
        }
        assert.deepStrictEqual(yield* store.modify([{ deviceId, modify: () => ["answer", shadow] }]), [
          Option.some("answer")
        ])
        assert.deepStrictEqual(yield* store.get(deviceId), Option.some(shadow))
      }))

    it.effect("returns what is stored of the newest devices of a product", () =>
      Effect.gen(function*() {
        const store = yield* ShadowStore
        const product = yield* insertProduct
        const devices = yield* insertDevices(product, [newDevice(), newDevice(), newDevice()])
        const [oldest, middle, newest] = devices.map(({ deviceId }) => deviceId)
        const { device: { deviceId: stranger } } = yield* insertDevice
        for (const deviceId of [oldest!, middle!, stranger]) yield* store.modify([{ deviceId, modify: report("a", 1) }])
        const sampled = (limit: number) =>
          Effect.map(store.sample(product.productKey, limit), (shadows) => shadows.map(({ deviceId }) => deviceId))
        assert.deepStrictEqual(yield* sampled(1), [])
        assert.deepStrictEqual(yield* sampled(2), [middle])
        yield* store.modify([{ deviceId: newest!, modify: report("a", 2) }])
        const stored = Option.getOrThrow(yield* store.get(newest!))
        assert.deepStrictEqual(yield* store.sample(product.productKey, 1), [stored])
        assert.sameMembers(yield* sampled(10), [oldest, middle, newest])
        assert.deepStrictEqual(yield* sampled(0), [])
      }))

    it.effect("answers in the order of the modifications, none for devices that do not exist", () =>
      Effect.gen(function*() {
        const store = yield* ShadowStore
        const product = yield* insertProduct
        const [first, second] = yield* insertDevices(product, [newDevice(), newDevice()])
        const missing = DeviceId.make("missing")
        const ids = [second!.deviceId, missing, first!.deviceId]
        yield* store.modify([{ deviceId: second!.deviceId, modify: report("a", 1) }])
        const answers = yield* store.modify(ids.map((deviceId) => ({ deviceId, modify: report("a", 2) })))
        assert.deepStrictEqual(answers, [Option.some(1), Option.none(), Option.some(0)])
        assert.isTrue(Option.isNone(yield* store.get(missing)))
        assert.deepStrictEqual(yield* store.modify([]), [])
      }))

    it.effect("writes nothing when the shadow stays the same", () =>
      Effect.gen(function*() {
        const store = yield* ShadowStore
        const { device: { deviceId } } = yield* insertDevice
        assert.deepStrictEqual(yield* store.modify([{ deviceId, modify: (shadow) => [7, shadow] }]), [Option.some(7)])
        assert.deepStrictEqual(yield* store.get(deviceId), Option.some(emptyShadow(deviceId)))
      }))

    it.effect("loses no update of concurrent writers", () =>
      Effect.gen(function*() {
        const store = yield* ShadowStore
        const product = yield* insertProduct
        const devices = yield* insertDevices(product, [0, 1, 2, 3].map(() => newDevice()))
        const writers = Array.from({ length: 12 }, (_, writer) => writer)
        yield* Effect.forEach(writers, (writer) =>
          store.modify(devices.map(({ deviceId }) => ({ deviceId, modify: report(`w${writer}`, writer) }))), {
          concurrency: "unbounded"
        })
        for (const { deviceId } of devices) {
          const shadow = Option.getOrThrow(yield* store.get(deviceId))
          assert.strictEqual(shadow.version, writers.length)
          assert.deepStrictEqual(
            Object.keys(shadow.reported).toSorted(),
            writers.map((writer) =>
              `w${writer}`
            ).toSorted()
          )
        }
      }))
  })
