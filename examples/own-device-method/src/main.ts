/**
 * Starts the cloud. A device reports a self-test over MQTT and a calibration over
 * HTTP.
 */
import { MqttServer } from "@device-cloud/mqtt"
import { Fixtures } from "@device-cloud/testing"
import { uplink } from "@device-cloud/testing/http"
import { MqttDevice } from "@device-cloud/testing/mqtt"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import * as Cloud from "./Cloud.ts"

const main = Effect.gen(function*() {
  const device = yield* Fixtures.createDevice()
  const { mqtt } = yield* MqttServer
  const connected = yield* MqttDevice.connectTo({ url: mqtt! }, device)
  const reply = yield* connected.request(connected.topic("thing/acme/selftest"), {
    parts: [{ name: "valve", passed: true }, { name: "sensor", passed: false }]
  })
  yield* Console.log("Over MQTT:", reply)

  const { deviceName, deviceSecret, productKey } = device
  const triple = { device_name: deviceName, device_secret: deviceSecret, product_key: productKey }
  const body = { method: "thing.acme.calibrate", params: { offset: -0.4, by: "Ada" } }
  const response = yield* uplink(triple, "PostAcme", { body })
  yield* Console.log("Over HTTP:", response.body)
})

main.pipe(Effect.scoped, Effect.provide(Cloud.layer), NodeRuntime.runMain)
