import { defaultProjectId, Devices } from "@device-cloud/core"
import { MqttServer } from "@device-cloud/mqtt"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Faults, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"

layer(MqttTestServer.layerMemory, { excludeTestServices: true })("a broker that drains", (it) => {
  it.effect("ends all connections, tells the store, and lets nobody in", () =>
    Effect.gen(function*() {
      const product = yield* Fixtures.createProduct({ validateType: "none" })
      const devices = yield* Effect.forEach(
        ["tcp", "tls", "webSocket"] as const,
        (over) => Effect.flatMap(Fixtures.createDevice(product), (device) => MqttDevice.connect(device, { over }))
      )
      yield* Effect.forEach(devices, (device) => device.post({ n: 1 }, { qos: 1 }))
      yield* (yield* MqttServer).drain("300 millis")
      yield* Effect.forEach(devices, ({ closed }) => closed)
      for (const { device: { deviceId } } of devices) {
        const { device } = yield* (yield* Devices).get(defaultProjectId, { deviceId })
        assert.strictEqual(device.status, "offline")
      }
      const refused = yield* Effect.flip(MqttDevice.connect(devices[0]!.device))
      assert.include(String(refused), "ECONNREFUSED")
    }))
})

/** A cloud whose store takes nothing more once a device is connected. */
const layerStuck = MqttTestServer.layer(
  Faults.layer({
    seed: 1,
    faults: [
      { on: "PresenceStore.record", does: "fail", calls: (n) => n > 1 },
      { on: "UplinkStore.commit", does: "fail" }
    ]
  }).pipe(Layer.provide(StorageMemory.layer))
)

/** A device that has said what cannot be stored. */
const connectDevice = Effect.gen(function*() {
  const product = yield* Fixtures.createProduct({ validateType: "none" })
  const device = yield* MqttDevice.connect(yield* Fixtures.createDevice(product))
  yield* Effect.forkScoped(Effect.ignore(device.post({ n: 1 }, { qos: 1 })))
  return device
})

describe("a broker whose store does not answer", () => {
  it.live("drains", () =>
    Effect.gen(function*() {
      const { closed } = yield* connectDevice
      yield* (yield* MqttServer).drain("0 millis")
      yield* closed
    }).pipe(Effect.provide(layerStuck)))

  it.live("ends", () =>
    Effect.gen(function*() {
      const { closed } = yield* Effect.provide(connectDevice, layerStuck)
      yield* closed
    }))
})
