import { DeviceMethod, DeviceMethods, DeviceReply } from "@device-cloud/core"
import { Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Layer, Schema } from "effect"

const pinged = Deferred.makeUnsafe<unknown>()

/** Methods of an application. */
const own = DeviceMethods.layer([
  DeviceMethod.request({
    name: "thing.acme.selftest",
    decode: Schema.Struct({ passed: Schema.Boolean }),
    handle: ({ passed }) => Effect.succeed(DeviceReply.success({ again: !passed }))
  }),
  DeviceMethod.request({
    name: "thing.acme.ping",
    form: "notice",
    decode: Schema.Unknown,
    handle: (params) => Effect.as(Deferred.succeed(pinged, params), DeviceReply.success({}))
  }),
  DeviceMethod.request({
    name: "acme.blob",
    form: "bytes",
    decode: Schema.String,
    handle: (hex) => Effect.succeed(DeviceReply.success({ hex }))
  })
])

const connectDevice = Effect.flatMap(Fixtures.createProduct({ validateType: "none" }), Fixtures.createDevice).pipe(
  Effect.flatMap((device) => MqttDevice.connect(device))
)

layer(own.pipe(Layer.provideMerge(MqttTestServer.layerMemory)), { excludeTestServices: true })(
  "device methods of an application",
  (it) => {
    it.effect("a request has the topic of its name, and its reply comes on the same with _reply", () =>
      Effect.gen(function*() {
        const device = yield* connectDevice
        const ask = (id: string, params: unknown) =>
          device.publish(device.topic("thing/acme/selftest"), JSON.stringify({ id, params }), 1)
        yield* ask("7", { passed: false })
        assert.deepStrictEqual(yield* device.take, {
          topic: device.topic("thing/acme/selftest_reply"),
          qos: 1,
          message: {
            code: 200,
            data: { again: true },
            id: "7",
            message: "success",
            method: "thing.acme.selftest",
            version: "1.0"
          }
        })
        yield* ask("8", { passed: "no" })
        const { message } = yield* device.take
        assert.deepInclude(message, { id: "8", code: 460 })
      }))

    it.effect("a notice gets no reply", () =>
      Effect.gen(function*() {
        const device = yield* connectDevice
        yield* device.publish(device.topic("thing/acme/ping"), JSON.stringify({ params: { n: 1 } }), 1)
        assert.deepStrictEqual(yield* Deferred.await(pinged), { n: 1 })
        yield* device.publish(device.topic("thing/acme/selftest"), JSON.stringify({ params: { passed: true } }), 1)
        const { topic } = yield* device.take
        assert.strictEqual(topic, device.topic("thing/acme/selftest_reply"))
      }))

    it.effect("bytes come as hex", () =>
      Effect.gen(function*() {
        const device = yield* connectDevice
        yield* device.publish(device.topic("acme/blob"), Buffer.from([1, 255]), 1)
        const { message } = yield* device.take
        assert.deepInclude(message, { code: 200, data: { hex: "01ff" } })
      }))
  }
)
