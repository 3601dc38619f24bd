import { Commands, defaultProjectId, type Device, Topologies } from "@device-cloud/core"
import { CloudState, eventually, Fixtures, SimulatedGateway } from "@device-cloud/testing"
import { MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Queue } from "effect"

const overMqtt = (device: Device) =>
  Effect.flatMap(MqttTestServer, ({ tcp }) => SimulatedGateway.connectMqtt({ ...device, url: tcp.url }))

const links = [["in the process", SimulatedGateway.connect], ["over MQTT", overMqtt]] as const

const createDevices = Effect.gen(function*() {
  const gateway = yield* Fixtures.createDevice(yield* Fixtures.createProduct({ nodeType: "gateway" }))
  const product = yield* Fixtures.createProduct({ nodeType: "gateway-sub" })
  const [first, second] = yield* Fixtures.createDevices(2, product)
  return { gateway, first: first!, second: second! }
})

describe.each(links)("a simulated gateway %s", (_, connect) => {
  layer(MqttTestServer.layerMemory, { excludeTestServices: true })("of a server", (it) => {
    it.effect("adds sub-devices, which then speak, listen and answer over its connection", () =>
      Effect.gen(function*() {
        const { first, gateway, second } = yield* createDevices
        const connected = yield* connect(gateway)
        const refused = yield* Effect.flip(Effect.scoped(connected.login(first)))
        assert.deepInclude(refused, { _tag: "Refusal", code: 6401 })
        assert.strictEqual((yield* connected.add([first, second])).code, 200)
        assert.lengthOf((yield* connected.topology).data as ReadonlyArray<unknown>, 2)
        const lamp = yield* connected.login(first, { on: { set: () => Effect.void } })
        assert.strictEqual((yield* lamp.postProperties({ power: 0 })).code, 200)
        yield* CloudState.untilStatus(first, "online")
        const { command } = yield* Effect.flatMap(
          Commands,
          (commands) => commands.request(defaultProjectId, first.deviceId, null, { power: 1 }, { wait: 10 })
        )
        assert.strictEqual(command.state, "succeeded")
        yield* eventually(CloudState.reported(first), { until: ({ power }) => power === 1 })
        yield* lamp.disconnect
        yield* CloudState.untilStatus(first, "offline")
      }))

    it.effect("reports for several at once, and removes them", () =>
      Effect.gen(function*() {
        const { first, gateway, second } = yield* createDevices
        const connected = yield* connect(gateway)
        yield* connected.add([first, second])
        const { deviceName, productKey } = second
        const packed = yield* connected.postPack({
          properties: { load: { value: 3 } },
          subDevices: [{ identity: { productKey, deviceName }, properties: { power: { value: 1 } } }]
        })
        assert.strictEqual(packed.code, 200)
        assert.deepStrictEqual(yield* CloudState.reported(gateway), { load: 3 })
        assert.deepStrictEqual(yield* CloudState.reported(second), { power: 1 })
        const lamp = yield* connected.login(first)
        assert.strictEqual((yield* connected.remove([first])).code, 200)
        assert.strictEqual(yield* lamp.closed, "detached")
        assert.lengthOf((yield* connected.topology).data as ReadonlyArray<unknown>, 1)
      }))

    it.effect("names what it finds while it may, and fetches secrets", () =>
      Effect.gen(function*() {
        const gateway = yield* Fixtures.createDevice(yield* Fixtures.createProduct({ nodeType: "gateway" }))
        const product = yield* Fixtures.createProduct({ nodeType: "gateway-sub", dynamicRegister: true })
        const { deviceName, deviceSecret, productKey } = yield* Fixtures.createDevice(product)
        const connected = yield* connect(gateway)
        yield* Effect.flatMap(
          Topologies,
          (topologies) => topologies.startAdding(defaultProjectId, gateway.deviceId, {})
        )
        assert.strictEqual((yield* connected.find([{ productKey, deviceName }])).code, 200)
        const { data } = yield* connected.register([{ productKey, deviceName }])
        assert.deepInclude((data as ReadonlyArray<object>)[0], { deviceName, deviceSecret })
        const found = yield* Queue.takeN(connected.received, 2)
        assert.deepStrictEqual(found.map(({ method }) => method), ["thing.gateway.permit", "thing.topo.add.notify"])
      }))
  })
})
