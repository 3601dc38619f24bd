import { defaultProjectId, Devices } from "@device-cloud/core"
import { MqttServer } from "@device-cloud/mqtt"
import { Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"

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
