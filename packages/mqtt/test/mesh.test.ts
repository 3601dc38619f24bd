import {
  Bindings,
  defaultProjectId,
  type Device,
  fieldsText,
  Mac,
  MeshNetworks,
  type ProductDraft
} from "@device-cloud/core"
import { eventually, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"

const createDevice = (nodeType: ProductDraft["nodeType"]) =>
  Effect.flatMap(Fixtures.createProduct({ nodeType, validateType: "none" }), Fixtures.createDevice)

const signed = Effect.fnUntraced(function*({ deviceName, deviceSecret, productKey }: Device) {
  const sign = (yield* Mac).sign("aescmac", deviceSecret, fieldsText({ deviceName, productKey }))
  return { productKey, deviceName, sign, signMethod: "aescmac" as const }
})

for (const [name, storage] of storages) {
  layer(MqttTestServer.layer(storage), { excludeTestServices: true })(`mesh and binding over MQTT on ${name}`, (it) => {
    it.effect("a gateway adds nodes, and gets the bytes for its network", () =>
      Effect.gen(function*() {
        const networks = yield* MeshNetworks
        const { networkKey } = yield* networks.create(defaultProjectId, {})
        const network_key = networkKey
        const [device, lamp] = [yield* createDevice("gateway"), yield* createDevice("direct")]
        yield* networks.addNode(defaultProjectId, networkKey, { ...yield* signed(device), nodeType: 2 })
        const gateway = yield* MqttDevice.connect(device)
        const { deviceName, productKey, sign, signMethod } = yield* signed(lamp)
        const node = { product_key: productKey, device_name: deviceName }
        yield* gateway.say("thing/mesh/add", {
          id: "7",
          version: "1.0",
          params: { network_key, ...node, sign, sign_method: signMethod, node_type: 1 }
        })
        assert.deepStrictEqual(yield* gateway.take, {
          topic: gateway.topic("thing/mesh/add_reply"),
          qos: 1,
          message: {
            code: 200,
            data: { mesh_addr: 0x0100 },
            id: "7",
            message: "success",
            method: "thing.mesh.add",
            version: "1.0"
          }
        })
        yield* networks.sendRaw(defaultProjectId, networkKey, { rawData: "d101ff" })
        const { message: { id, ...raw }, topic } = yield* gateway.take
        assert.strictEqual(topic, gateway.topic("thing/mesh/raw"))
        assert.match(String(id), /^\d+$/)
        assert.deepStrictEqual(raw, {
          version: "1.0.0",
          method: "thing.mesh.raw",
          params: { network_key, raw_data: "d101ff" }
        })
        // Its confirmation is taken, and not answered: the next message is the reply to what follows.
        yield* gateway.publish(gateway.topic("thing/mesh/raw_reply"), JSON.stringify({ id, code: 200, data: {} }), 1)
        yield* gateway.say("thing/mesh/get", { id: "7", version: "1.0", params: { network_key } })
        assert.deepInclude((yield* gateway.take).message, {
          method: "thing.mesh.get",
          data: [
            { ...node, mesh_addr: 0x0100, node_type: 1 },
            { product_key: device.productKey, device_name: device.deviceName, mesh_addr: 1, node_type: 2 }
          ]
        })
        yield* gateway.end
        const nobody = yield* eventually(Effect.flip(networks.sendRaw(defaultProjectId, networkKey, { rawData: "00" })))
        assert.strictEqual(nobody._tag, "NoGatewayOnline")
      }))

    it.effect("a device reports the random that it got when it was provisioned", () =>
      Effect.gen(function*() {
        const bindings = yield* Bindings
        const device = yield* createDevice("direct")
        const { deviceName, productKey } = device
        const connected = yield* MqttDevice.connect(device)
        const say = (message: object) =>
          Effect.andThen(
            connected.say("thing/bind/post", message),
            Effect.map(connected.take, ({ message }) => message)
          )
        const report = (params: object) => say({ id: "7", version: "1.0", params })
        const lookUp = bindings.random(defaultProjectId, productKey, deviceName)
        assert.deepInclude(yield* report({ random: "short" }), { code: 460, method: "thing.bind.post" })
        assert.strictEqual((yield* Effect.flip(lookUp))._tag, "RandomNotReported")
        assert.deepInclude(yield* report({ random: "0123456789" }), { code: 200, data: {} })
        assert.strictEqual(yield* lookUp, "0123456789")
        assert.deepInclude(yield* say({ random: "9876543210" }), { code: 200, id: "0", data: {} })
        assert.strictEqual(yield* lookUp, "9876543210")
        assert.deepInclude(yield* say({ params: {}, random: "0123456789" }), { code: 460 })
        const made = yield* bindings.expect(defaultProjectId, productKey, deviceName)
        assert.deepInclude(yield* report({ random: "0123456789" }), { code: 460 })
        assert.strictEqual((yield* Effect.flip(lookUp))._tag, "RandomNotReported")
        assert.deepInclude(yield* report({ random: made }), { code: 200 })
        assert.strictEqual(yield* lookUp, made)
      }))
  })
}
