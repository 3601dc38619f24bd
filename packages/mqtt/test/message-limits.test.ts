import { defaultProjectId, type Device, Mac, Scenes } from "@device-cloud/core"
import { CloudState, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"

const createDevice = Effect.flatMap(Fixtures.createProduct({ validateType: "none" }), Fixtures.createDevice)

/** A connected gateway with two sub-devices. */
const household = Effect.gen(function*() {
  const gateway = yield* Fixtures.createDevice(
    yield* Fixtures.createProduct({ nodeType: "gateway", validateType: "none" })
  )
  const product = yield* Fixtures.createProduct({ nodeType: "gateway-sub", validateType: "none" })
  const subDevices = yield* Effect.replicateEffect(Fixtures.createDevice(product), 2)
  const connected = yield* MqttDevice.connect(gateway)
  const mac = yield* Mac
  const added = yield* connected.request(
    connected.topic("thing/topo/add"),
    subDevices.map(({ deviceName, deviceSecret, productKey }) => ({
      productKey,
      deviceName,
      signMethod: "hmacMd5",
      sign: mac.sign("hmacmd5", deviceSecret, `deviceName${deviceName}productKey${productKey}`)
    }))
  )
  assert.strictEqual(added.code, 200)
  return { connected, gateway, subDevices }
})

const nameOf = ({ deviceName, productKey }: Device) => ({ productKey, deviceName })

/** Values of the property `t`, each another one. */
const values = (count: number, first = 0) =>
  Array.from({ length: count }, (_, i) => ({ value: first + i, time: first + i + 1 }))

const events = (count: number) => Array.from({ length: count }, (_, i) => ({ value: { n: i }, time: i + 1 }))

const isEmpty = Effect.fnUntraced(function*(device: Device) {
  assert.deepStrictEqual(yield* CloudState.reported(device), {})
  assert.deepStrictEqual(yield* CloudState.samples(device, "t"), [])
  assert.deepStrictEqual(yield* CloudState.events(device), [])
})

/** A scene that each change of a device's property `t` fires. Returns its number of executions. */
const watch = Effect.fnUntraced(function*({ deviceName, productKey }: Device) {
  const scenes = yield* Scenes
  const { scene: { sceneId } } = yield* scenes.create(defaultProjectId, {
    name: `Scene of ${deviceName}`,
    status: "enable",
    triggers: [{
      URI: "trigger/device/property",
      params: {
        product_key: productKey,
        device_name: deviceName,
        property_id: "t",
        compare_type: ">=",
        compare_val: "0"
      }
    }]
  })
  const executions = Effect.map(
    scenes.executions(defaultProjectId, sceneId, { page: 1, pageSize: 100 }),
    ({ total }) => total
  )
  return executions
})

for (const [name, storage] of storages) {
  layer(MqttTestServer.layer(storage), { excludeTestServices: true })(`limits of a message on ${name}`, (it) => {
    it.effect("more than 1,000 values are refused, however they come, and nothing of the message is stored", () =>
      Effect.gen(function*() {
        const { connected, gateway, subDevices: [first, second] } = yield* household
        const parts = [first!, second!].map((device) => ({
          identity: nameOf(device),
          properties: { t: values(400) },
          events: { e: events(100) }
        }))
        const messages: ReadonlyArray<readonly [rest: string, params: unknown]> = [
          ["property/post", Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`t${i}`, i]))],
          ["property/batch/post", { properties: { t: values(125_000).map(() => 1) } }],
          ["property/batch/post", { properties: { t: values(900) }, events: { e: events(101) } }],
          ["property/batch/post", { properties: Object.fromEntries(values(1001).map(({ time }) => [time, []])) }],
          ["property/pack/post", { properties: { t: values(1) }, subDevices: parts }],
          ["property/pack/post", { subDevices: values(1001) }],
          ["property/history/post", [{ properties: { t: values(1) } }, ...parts]],
          ["property/history/post", [{ properties: values(1001).map(({ value }) => ({ t: value })) }]],
          ["property/history/post", values(1001).map(() => ({}))]
        ]
        for (const [rest, params] of messages) {
          const reply = yield* connected.request(connected.topic(`thing/event/${rest}`), params)
          assert.strictEqual(reply.code, 460, rest)
          assert.include(reply.message, "1000 values", rest)
        }
        for (const device of [gateway, first!, second!]) yield* isEmpty(device)
      }))

    it.effect("1,000 values are stored, however they come", () =>
      Effect.gen(function*() {
        const { connected, gateway, subDevices: [first, second] } = yield* household
        const each = [nameOf(first!), nameOf(second!)].map((identity) => ({ identity, properties: { t: values(500) } }))
        const messages: ReadonlyArray<readonly [rest: string, params: unknown]> = [
          ["property/batch/post", { properties: { t: values(900) }, events: { e: events(100) } }],
          ["property/batch/post", { properties: { b: values(1000) } }],
          ["property/pack/post", { subDevices: each }],
          ["property/history/post", values(1000).map((value) => ({ properties: [{ h: value }] }))]
        ]
        for (const [rest, params] of messages) {
          const reply = yield* connected.request(connected.topic(`thing/event/${rest}`), params)
          assert.strictEqual(reply.code, 200, `${rest}: ${reply.message}`)
        }
        assert.lengthOf(yield* CloudState.samples(gateway, "t"), 900)
        assert.lengthOf(yield* CloudState.events(gateway, "e"), 100)
        assert.lengthOf(yield* CloudState.samples(gateway, "b"), 1000)
        assert.lengthOf(yield* CloudState.samples(gateway, "h"), 1000)
        for (const device of [first!, second!]) assert.lengthOf(yield* CloudState.samples(device, "t"), 500)
      }))

    it.effect("a message that fires scenes more than 100 times is refused, and those around it are not", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const executions = yield* watch(device)
        const connected = yield* MqttDevice.connect(device)
        const topic = connected.topic("thing/event/property/batch/post")
        const says = (count: number, first: number) =>
          connected.publish(
            topic,
            JSON.stringify({ id: first, params: { properties: { t: values(count, first) } } }),
            1
          )
        yield* Effect.all([says(2, 0), says(101, 1000), says(3, 2000)], { concurrency: "unbounded" })
        const replies = yield* Effect.replicateEffect(connected.takeFrom(`${topic}_reply`), 3)
        assert.deepStrictEqual(replies.map(({ code, id }) => [id, code]), [[0, 200], [1000, 460], [2000, 200]])
        assert.include(replies[1].message, "100 executions")
        assert.deepStrictEqual(yield* CloudState.samples(device, "t"), [0, 1, 2000, 2001, 2002])
        assert.strictEqual(yield* executions, 5)
        yield* says(100, 3000)
        assert.strictEqual((yield* connected.takeFrom(`${topic}_reply`)).code, 200)
        assert.lengthOf(yield* CloudState.samples(device, "t"), 105)
      }))

    it.effect("executions of a pack count on all of its devices together", () =>
      Effect.gen(function*() {
        const { connected, gateway, subDevices } = yield* household
        const executions = yield* Effect.forEach([gateway, ...subDevices], watch)
        const pack = (count: number) =>
          connected.request(connected.topic("thing/event/property/pack/post"), {
            properties: { t: values(count) },
            subDevices: subDevices.map((device) => ({ identity: nameOf(device), properties: { t: values(count) } }))
          })
        const refused = yield* pack(34)
        assert.strictEqual(refused.code, 460)
        assert.include(refused.message, "100 executions")
        for (const device of [gateway, ...subDevices]) yield* isEmpty(device)
        assert.strictEqual((yield* pack(33)).code, 200)
        assert.deepStrictEqual(yield* Effect.all(executions), [33, 33, 33])
        for (const device of [gateway, ...subDevices]) assert.lengthOf(yield* CloudState.samples(device, "t"), 33)
      }))
  })
}
