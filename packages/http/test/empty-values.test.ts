import { call, createDevice, createProduct, type DeviceTriple, testApi, uplink } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"

layer(testApi(storages[0][1]), { excludeTestServices: true })("empty values of generated clients", (it) => {
  it.effect("an empty filter is none, on every list", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      yield* createDevice(product_key)
      for (
        const path of [
          `/things?product_key=${product_key}&status=&enabled_status=&batch_id=&tag=&keyword=`,
          "/rule-engine/scenes?name=&status=",
          "/ota/firmwares?product_key=&name="
        ]
      ) {
        const { body } = yield* call("GET", path)
        assert.strictEqual(body.code, 0, `${path}: ${body.message}`)
      }
      const listed = yield* call("GET", `/things?status=&product_key=${product_key}&keyword=`)
      assert.strictEqual(listed.body.data.total, 1)
      assert.strictEqual((yield* call("GET", "/things?keyword=a=")).body.data.total, 0)
    }))

  it.effect("parameters of a scene that stand beside another URI may be empty", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const empty = { status: "*", status_duration: 0, time_range: { start_timestamp: 0, end_timestamp: 0 } }
      const { body } = yield* call("POST", "/rule-engine/scenes", {
        body: {
          name: `Empty of ${product_key}`,
          status: "enable",
          conditions: [{
            URI: "condition/device/property",
            params: { product_key, device_name: "*", property_id: "x", ...empty }
          }]
        }
      })
      assert.strictEqual(body.code, 0, body.message)
    }))

  it.effect("a time-out of 0 is the default, and bool has labels of its own", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct({ node_type: "gateway", network_type: "" })
      const { device_id } = yield* createDevice(product_key)
      const started = yield* call("PUT", `/things/${device_id}/topo`, {
        body: { action: "sub.add.start", params: { timeout: 0, product_keys: [] } }
      })
      assert.strictEqual(started.body.code, 0, started.body.message)
      for (const [id, dataType] of Object.entries({ a: { type: "bool" }, b: { type: "bool", specs: {} } })) {
        const { body } = yield* call("POST", `/products/${product_key}/thing-model-element`, {
          body: { type: "property", element: { id, name: id, accessMode: "rw", dataType } }
        })
        assert.strictEqual(body.code, 0, body.message)
        const { properties } = body.data.thing_model
        assert.deepStrictEqual(properties.at(-1).dataType, { type: "bool", specs: { 0: "false", 1: "true" } })
      }
    }))

  it.effect("only the device reports; its question for the time may stand in params", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const device = yield* createDevice(product_key)
      const put = (state: object) => call("PUT", `/things/${device.device_id}/shadow`, { body: { state } })
      const refused = yield* put({ desired: { a: 1 }, reported: { a: 1 } })
      assert.deepStrictEqual([refused.status, Object.keys(refused.body.data.issues)], [400, ["state.reported"]])
      assert.strictEqual((yield* put({ desired: { a: 1 } })).body.code, 0)
      const triple = device as unknown as DeviceTriple
      for (const body of [{ deviceSendTime: "7" }, { params: { deviceSendTime: "7" } }]) {
        const { body: answer } = yield* uplink(triple, "PostNTP", { body })
        assert.strictEqual(answer.data.deviceSendTime, "7")
      }
    }))
})
