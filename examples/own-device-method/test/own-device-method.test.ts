import type { Device } from "@device-cloud/core"
import { MqttServer } from "@device-cloud/mqtt"
import { CloudState, Fixtures } from "@device-cloud/testing"
import { call, uplink } from "@device-cloud/testing/http"
import { MqttDevice } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as Cloud from "../src/Cloud.ts"
import { SelfTests } from "../src/SelfTests.ts"

const parts = [{ name: "valve", passed: true }]

const connect = Effect.fnUntraced(function*(device: Device) {
  const { mqtt } = yield* MqttServer
  return yield* MqttDevice.connectTo({ url: mqtt! }, device)
})

const post = ({ deviceName, deviceSecret, productKey }: Device, action: string, body: unknown) =>
  uplink({ device_name: deviceName, device_secret: deviceSecret, product_key: productKey }, action, { body })

/** Sends a method over MQTT, then over HTTP. Returns code and data of both replies. */
const sayTwice = Effect.fnUntraced(function*(device: Device, method: string, params: unknown) {
  const connected = yield* connect(device)
  const reply = yield* connected.request(connected.topic(method.replaceAll(".", "/")), params)
  const { body } = yield* post(device, "PostAcme", { method, params })
  return [{ code: reply.code, data: reply.data }, { code: body.code, data: body.data }]
})

layer(Cloud.layer, { excludeTestServices: true })("device methods of an application", (it) => {
  it.effect("a request uses the application's service, and its reply reaches the device", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const data = { passed: true, next: 86_400_000 }
      const replies = yield* sayTwice(device, "thing.acme.selftest", { parts })
      assert.deepStrictEqual(replies, [{ code: 200, data }, { code: 0, data }])
      const selfTests = yield* SelfTests
      assert.deepStrictEqual(yield* selfTests.newest(device.deviceId), { parts })
    }))

  it.effect("a state update is in the shadow and in the history when its reply arrives", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const replies = yield* sayTwice(device, "thing.acme.calibrate", { offset: -0.4, by: "Ada" })
      assert.deepStrictEqual(replies.map(({ code }) => code), [200, 0])
      assert.deepStrictEqual(yield* CloudState.reported(device), { offset: -0.4 })
      const events = yield* CloudState.events(device, "calibrated")
      assert.deepStrictEqual(events.map(({ value }) => value), [{ by: "Ada", offset: -0.4 }, {
        by: "Ada",
        offset: -0.4
      }])
    }))

  it.effect("params that do not fit are refused, and the refusal names the field", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const connected = yield* connect(device)
      const { code, message } = yield* connected.request(connected.topic("thing/acme/selftest"), { parts: [] })
      assert.strictEqual(code, 460)
      assert.match(message, /^parts: /)
      const { body, status } = yield* post(device, "PostAcme", { method: "thing.acme.calibrate", params: { by: 1 } })
      assert.strictEqual(status, 400)
      assert.match(body.message, /offset/)
      assert.deepStrictEqual(yield* CloudState.reported(device), {})
    }))

  it.effect("an action needs the name of one of its methods", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      for (const method of [undefined, 7, "thing.acme.unknown", "thing.event.property.post"]) {
        const { body } = yield* post(device, "PostAcme", { method, params: { parts } })
        assert.strictEqual(body.code, 40001)
        assert.match(body.message, /body\.method: Expected one of thing\.acme\.selftest, thing\.acme\.calibrate/)
      }
    }))

  it.effect("an unknown action is refused with the known ones, before the signature is checked", () =>
    Effect.gen(function*() {
      const { body } = yield* call(
        "POST",
        "/thing-uplink?" + new URLSearchParams({
          product_key: "p",
          device_name: "d",
          sign_method: "hmacsha256",
          random: "12345678",
          sign: "x",
          action: "PostOther"
        }).toString(),
        { key: null, body: {} }
      )
      assert.strictEqual(body.code, 40001)
      assert.match(body.message, /action: Expected one of PostAcme, PostEvent, .*PostProperty/)
    }))
})
