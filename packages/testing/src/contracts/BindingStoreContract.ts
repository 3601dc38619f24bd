/**
 * The laws of `BindingStore`.
 */
import { BindingStore, type DeviceCloud, DeviceId, DeviceStore, expectRandom, unbound } from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertDevice, unique } from "./Samples.ts"

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void => {
  layer(detached(stores), { excludeTestServices: true })(`BindingStore on ${name}`, (it) => {
    it.effect("keeps what a change makes of a binding, and leaves it where the change makes nothing", () =>
      Effect.gen(function*() {
        const store = yield* BindingStore
        const [{ device: { deviceId } }, { device: other }] = [yield* insertDevice, yield* insertDevice]
        assert.deepStrictEqual(yield* store.get(deviceId), unbound)
        const theirs = { ...unbound, reported: "abcdefgh" }
        assert.isTrue(yield* store.modify(other.deviceId, () => theirs))
        const expected = expectRandom("0123456789abcdef", epoch)
        assert.isTrue(yield* store.modify(deviceId, () => expected))
        assert.deepStrictEqual(yield* store.get(deviceId), expected)
        const reported = { ...expected, reported: "0123456789abcdef" }
        assert.isTrue(
          yield* store.modify(deviceId, (binding) => {
            assert.deepStrictEqual(binding, expected)
            return reported
          })
        )
        assert.deepStrictEqual(yield* store.get(other.deviceId), theirs)
        assert.isFalse(yield* store.modify(deviceId, () => undefined))
        assert.deepStrictEqual(yield* store.get(deviceId), reported)
        assert.isTrue(yield* store.modify(deviceId, () => unbound))
        assert.deepStrictEqual(yield* store.get(deviceId), unbound)
      }))

    it.effect("loses none of many changes at the same time", () =>
      Effect.gen(function*() {
        const store = yield* BindingStore
        const { device: { deviceId } } = yield* insertDevice
        yield* Effect.all(
          Array.from({ length: 12 }, () =>
            store.modify(deviceId, (binding) => ({ ...binding, reported: `${binding.reported ?? ""}x` }))),
          { concurrency: "unbounded" }
        )
        assert.strictEqual((yield* store.get(deviceId)).reported, "x".repeat(12))
      }))

    it.effect("keeps nothing about a device that is not there", () =>
      Effect.gen(function*() {
        const store = yield* BindingStore
        const { device, product } = yield* insertDevice
        assert.isTrue(yield* store.modify(device.deviceId, () => ({ ...unbound, reported: "abcdefgh" })))
        yield* (yield* DeviceStore).remove(product.projectId, device.deviceId)
        for (const deviceId of [device.deviceId, DeviceId.make(unique("missing"))]) {
          assert.deepStrictEqual(yield* store.get(deviceId), unbound)
          assert.isFalse(yield* store.modify(deviceId, () => ({ ...unbound, reported: "abcdefgh" })))
        }
      }))
  })
}
