import { DeviceMethod, DeviceMethods, DeviceReply } from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { createDevice, createProduct, type DeviceTriple, testApi, uplink } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"

const echo = (name: string, action: string, form: DeviceMethod.MessageForm) =>
  DeviceMethod.request({
    name,
    action,
    form,
    decode: Schema.Json,
    handle: (params) => Effect.succeed(DeviceReply.success({ name, params }))
  })

const own = DeviceMethods.layer([
  echo("thing.acme.one", "PostOne", "request"),
  echo("thing.acme.blob", "PostBlob", "bytes"),
  echo("thing.acme.any.*", "PostAny", "request"),
  echo("thing.acme.property", "PostProperty", "request"),
  echo("thing.acme.hex", "PostHex", "bytes"),
  echo("thing.acme.answer", "PostAnswer", "answer")
])

const newDevice = Effect.gen(function*() {
  const { product_key } = yield* createProduct({ validate_type: "none" })
  return (yield* createDevice(product_key)) as unknown as DeviceTriple
})

layer(own.pipe(Layer.provideMerge(testApi(StorageMemory.layer))), { excludeTestServices: true })(
  "actions of an application",
  (it) => {
    it.effect("an action of one method takes the params of every body", () =>
      Effect.gen(function*() {
        const { body } = yield* uplink(yield* newDevice, "PostOne", { body: { method: "other", params: { n: 1 } } })
        assert.deepInclude(body, { code: 0, data: { name: "thing.acme.one", params: { n: 1 } } })
      }))

    it.effect("bytes come as they are, as hex text, and as hex in JSON", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const bodies = [
          { raw: Buffer.from([1, 255]), headers: { "content-type": "application/octet-stream" } },
          { raw: "01FF", headers: { "content-type": "text/plain" } },
          { body: { params: { data: "01ff" } } }
        ]
        for (const options of bodies) {
          const { body } = yield* uplink(device, "PostBlob", options)
          assert.deepInclude(body, { code: 0, data: { name: "thing.acme.blob", params: "01ff" } })
        }
        const { body, status } = yield* uplink(device, "PostBlob", { body: { params: { data: "0" } } })
        assert.deepStrictEqual([status, body.code], [400, 40001])
      }))

    it.effect("an action of the protocol goes on as before when an application adds a method to it", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const post = (body: object) => Effect.map(uplink(device, "PostProperty", { body }), ({ body }) => body)
        assert.deepInclude(yield* post({ params: { on: 1 } }), { code: 0, data: {} })
        assert.deepInclude(yield* post({ method: "thing.event.property.post", params: { on: 1 } }), {
          code: 0,
          data: {}
        })
        const own = yield* post({ method: "thing.acme.property", params: 7 })
        assert.deepInclude(own, { code: 0, data: { name: "thing.acme.property", params: 7 } })
        const { body } = yield* uplink(device, "PostHex", { raw: "01ff", headers: { "content-type": "text/plain" } })
        assert.strictEqual(body.code, 0)
        const { body: hex } = yield* uplink(device, "PostHex", {
          body: { method: "thing.acme.hex", params: { data: "01FF" } }
        })
        assert.deepInclude(hex, { code: 0, data: { name: "thing.acme.hex", params: "01ff" } })
      }))

    it.effect("an answer is the whole body, as over MQTT", () =>
      Effect.gen(function*() {
        const { body } = yield* uplink(yield* newDevice, "PostAnswer", { body: { id: "3", code: 200 } })
        assert.deepInclude(body, { code: 0, data: { name: "thing.acme.answer", params: { id: "3", code: 200 } } })
      }))

    it.effect("the body names the method of a pattern", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const { body } = yield* uplink(device, "PostAny", { body: { method: "thing.acme.any.thing", params: 1 } })
        assert.deepInclude(body, { code: 0, data: { name: "thing.acme.any.*", params: 1 } })
        const { body: refused } = yield* uplink(device, "PostAny", { body: { method: "thing.acme.one", params: 1 } })
        assert.strictEqual(refused.code, 40001)
      }))
  }
)
