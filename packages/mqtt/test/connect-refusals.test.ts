import { ConnectRefusals, DeviceName, Devices } from "@device-cloud/core"
import { eventually, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Logger, References } from "effect"
import { storages } from "../../../vitest.storages.ts"

/** What the log says: the annotations of each line. */
class LogLines extends Context.Service<LogLines, { readonly lines: Array<Record<string, unknown>> }>()("LogLines") {
  static readonly layer = Layer.unwrap(Effect.sync(() => {
    const lines: Array<Record<string, unknown>> = []
    const logger = Logger.make(({ fiber }) => {
      lines.push({ ...fiber.getRef(References.CurrentLogAnnotations) })
    })
    return Layer.merge(Layer.succeed(LogLines, { lines }), Logger.layer([logger]))
  }))
}

for (const [name, storage] of storages) {
  layer(MqttTestServer.layer(storage).pipe(Layer.provideMerge(LogLines.layer)), { excludeTestServices: true })(
    `refused CONNECTs on ${name}`,
    (it) => {
      it.effect("why a device could not connect is logged and kept", () =>
        Effect.gen(function*() {
          const refusals = yield* ConnectRefusals
          const device = yield* Fixtures.createDevice()
          const of = refusals.ofDevice(device.projectId, device.deviceId)
          const wrong = { ...device, deviceSecret: "wrong" }
          for (let i = 0; i < 3; i++) assert.strictEqual(yield* MqttDevice.connack(wrong), 4)
          const [wrongSignature] = yield* eventually(of, { until: ([found]) => found?.times === 3 })
          assert.deepInclude(wrongSignature, { address: "127.0.0.1", reason: "wrong signature", returnCode: 4 })
          yield* (yield* Devices).disable(device.projectId, device.deviceId)
          assert.strictEqual(yield* MqttDevice.connack(device), 5)
          const [latest] = yield* eventually(of, { until: ({ length }) => length === 2 })
          assert.deepInclude(latest, { reason: "device disabled", returnCode: 5, times: 1 })
          // Of a device that does not exist nothing is kept.
          assert.strictEqual(yield* MqttDevice.connack({ ...device, deviceName: DeviceName.make("nobody") }), 4)
          const { lines } = yield* LogLines
          const about = (deviceName: string) => lines.filter((line) => line["device_name"] === deviceName)
          yield* eventually(Effect.sync(() => about("nobody")), { until: ({ length }) => length === 1 })
          assert.deepInclude(about("nobody")[0], { reason: "unknown device", address: "127.0.0.1", return_code: 4 })
          const reasons = about(device.deviceName).map(({ reason }) => reason)
          assert.deepStrictEqual(reasons, ["wrong signature", "device disabled"])
        }))

      it.effect("a flood of CONNECTs writes few lines and few rows, and says how many there were", () =>
        Effect.gen(function*() {
          const { note, ofDevice } = yield* ConnectRefusals
          const { lines } = yield* LogLines
          const device = yield* Fixtures.createDevice()
          const before = lines.length
          for (let i = 0; i < 5000; i++) {
            note({ device, address: `198.51.${i >> 8}.${i & 255}`, reason: "wrong signature", returnCode: 4 })
          }
          const kept = yield* eventually(ofDevice(device.projectId, device.deviceId), {
            until: ({ length }) => length > 0
          })
          assert.lengthOf(kept, 20)
          assert.isAtMost(lines.length - before, 2 * 11)
        }))
    }
  )
}
