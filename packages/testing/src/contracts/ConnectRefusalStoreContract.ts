/**
 * The laws of `ConnectRefusalStore`.
 */
import {
  ConnectRefusalStore,
  type Device,
  type DeviceCloud,
  DeviceName,
  DeviceStore,
  keptRefusals,
  type NewConnectRefusal
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertDevice, unique } from "./Samples.ts"

const refusal = (
  { deviceName, productKey }: Pick<Device, "productKey" | "deviceName">,
  fields: Partial<NewConnectRefusal> = {}
): NewConnectRefusal => ({
  productKey,
  deviceName,
  address: "192.0.2.1",
  reason: "wrong signature",
  returnCode: 4,
  times: 1,
  firstAt: epoch,
  at: epoch,
  ...fields
})

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void => {
  layer(detached(stores), { excludeTestServices: true })(`ConnectRefusalStore on ${name}`, (it) => {
    it.effect("counts refusals that are equal, and returns the latest first", () =>
      Effect.gen(function*() {
        const store = yield* ConnectRefusalStore
        const { device } = yield* insertDevice
        assert.deepStrictEqual(yield* store.of(device.deviceId), [])
        yield* store.add([
          refusal(device, { times: 2, at: epoch + 5 }),
          refusal(device, { reason: "device disabled", returnCode: 5, at: epoch + 7 }),
          refusal(device, { deviceName: DeviceName.make(unique("missing")) })
        ])
        yield* store.add([refusal(device, { times: 3, firstAt: epoch + 1, at: epoch + 9 })])
        const common = { address: "192.0.2.1", firstAt: epoch }
        const disabled = { ...common, reason: "device disabled", returnCode: 5, times: 1, at: epoch + 7 }
        const wrong = { ...common, reason: "wrong signature", returnCode: 4, times: 5, at: epoch + 9 }
        assert.deepStrictEqual(yield* store.of(device.deviceId), [wrong, disabled])
        // Another node tells late of what was earlier.
        yield* store.add([refusal(device, { firstAt: epoch - 3, at: epoch - 2 })])
        assert.deepStrictEqual(yield* store.of(device.deviceId), [
          { ...wrong, times: 6, firstAt: epoch - 3 },
          disabled
        ])
      }))

    it.effect("adds up what many add at once, also of the same device in one call", () =>
      Effect.gen(function*() {
        const store = yield* ConnectRefusalStore
        const [a, b] = [(yield* insertDevice).device, (yield* insertDevice).device]
        const calls = Array.from({ length: 10 }, (_, i) =>
          store.add([
            ...i % 2 === 0 ? [refusal(a), refusal(b)] : [refusal(b), refusal(a)],
            refusal(a, { at: epoch + i })
          ]))
        yield* Effect.all(calls, { concurrency: "unbounded" })
        const [ofA] = yield* store.of(a.deviceId)
        assert.deepStrictEqual([ofA!.times, ofA!.at], [20, epoch + 9])
        assert.strictEqual((yield* store.of(b.deviceId))[0]!.times, 10)
      }))

    it.effect("keeps so many of a device, and those go with it", () =>
      Effect.gen(function*() {
        const store = yield* ConnectRefusalStore
        const { device } = yield* insertDevice
        yield* store.add(
          Array.from(
            { length: keptRefusals + 5 },
            (_, i) => refusal(device, { address: `192.0.2.${i}`, at: epoch + i })
          )
        )
        const kept = yield* store.of(device.deviceId)
        assert.lengthOf(kept, keptRefusals)
        assert.strictEqual(kept.at(-1)!.at, epoch + 5)
        yield* (yield* DeviceStore).remove(device.projectId, device.deviceId)
        assert.deepStrictEqual(yield* store.of(device.deviceId), [])
      }))
  })
}
