import { Configurations, defaultProjectId, DeviceSessions } from "@device-cloud/core"
import { eventually, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"

const addressOf = ({ fileName, objectId }: { readonly objectId: string; readonly fileName: string }) =>
  Effect.succeed(`https://cloud.example.com/objects/${objectId}/${fileName}`)

/** A connected device, and how it gets a configuration of its own. */
const connectDevice = Effect.gen(function*() {
  const configurations = yield* Configurations
  const device = yield* Fixtures.createDevice()
  const { deviceId, productKey } = device
  return {
    connected: yield* MqttDevice.connect(device),
    put: (content: string) =>
      configurations.put(defaultProjectId, { deviceId }, { format: "text", content }, addressOf),
    push: configurations.push(defaultProjectId, { deviceId }),
    progress: configurations.progress(defaultProjectId, productKey, { page: 1, pageSize: 10 })
  }
})

for (const [name, storage] of storages) {
  layer(MqttTestServer.layer(storage), { excludeTestServices: true })(`pushed configuration on ${name}`, (it) => {
    it.effect("the connected devices of a product get it, and their replies are noted", () =>
      Effect.gen(function*() {
        const configurations = yield* Configurations
        const product = yield* Fixtures.createProduct()
        const { productKey } = product
        const [first, second] = yield* Fixtures.createDevices(3, product)
        const connected = [yield* MqttDevice.connect(first!), yield* MqttDevice.connect(second!)]
        const draft = { format: "json", content: "{}" } as const
        const stored = yield* configurations.put(defaultProjectId, { productKey }, draft, addressOf)
        yield* configurations.push(defaultProjectId, { productKey })
        for (const device of connected) {
          const { message, topic } = yield* device.take
          assert.strictEqual(topic, device.topic("thing/config/push"))
          assert.deepInclude(message, {
            method: "thing.config.push",
            params: {
              configId: stored.configurationId,
              configSize: 2,
              sign: stored.sha256,
              signMethod: "Sha256",
              url: stored.url,
              getType: "file"
            }
          })
        }
        yield* connected[0]!.say("thing/config/push_reply", { id: "1", code: 200, data: {} })
        yield* connected[1]!.say("thing/config/push_reply", { id: "1", code: 500, data: {} })
        const progress = configurations.progress(defaultProjectId, productKey, { page: 1, pageSize: 10 })
        const { items } = yield* eventually(progress, {
          until: ({ items }) => items.some(({ state }) => state === "applied")
        })
        assert.deepStrictEqual(
          new Map(items.map(({ deviceId, state }) => [deviceId, state])),
          new Map([[first!.deviceId, "applied"], [second!.deviceId, "offered"]])
        )
      }))

    it.effect("a device without a connection hears of no push, and what it has confirmed before stays noted", () =>
      Effect.gen(function*() {
        const configurations = yield* Configurations
        const product = yield* Fixtures.createProduct()
        const { productKey } = product
        const [device] = yield* Fixtures.createDevices(1, product)
        const { deviceId } = device!
        const put = (content: string) =>
          configurations.put(defaultProjectId, { deviceId }, { format: "text", content }, addressOf)
        const push = configurations.push(defaultProjectId, { deviceId })
        const progress = Effect.map(
          configurations.progress(defaultProjectId, productKey, { page: 1, pageSize: 10 }),
          ({ items }) => items.map(({ configurationId, state }) => `${configurationId} ${state}`)
        )
        const { configurationId } = yield* put("a")
        yield* push
        assert.deepStrictEqual(yield* progress, [])
        const connected = yield* MqttDevice.connect(device!)
        yield* push
        yield* connected.take
        yield* connected.say("thing/config/push_reply", { id: "1", code: 200 })
        yield* eventually(progress, { until: ([state]) => state === `${configurationId} applied` })
        yield* connected.end
        yield* eventually(DeviceSessions.use((sessions) => sessions.connected([deviceId])), {
          until: ({ length }) => length === 0
        })
        yield* put("b")
        yield* push
        assert.deepStrictEqual(yield* progress, [`${configurationId} applied`])
      }))

    it.effect("a reply counts for the version that the device was offered, not for one that was stored since", () =>
      Effect.gen(function*() {
        const { connected, progress, push, put } = yield* connectDevice
        const first = yield* put("a")
        yield* push
        yield* connected.take
        yield* put("b")
        yield* connected.say("thing/config/push_reply", { id: "1", code: 200 })
        const { items } = yield* eventually(progress, { until: ({ items }) => items[0]?.state === "applied" })
        assert.strictEqual(items[0]?.configurationId, first.configurationId)
      }))

    it.effect("a device gets its own, and a later one has to be confirmed again", () =>
      Effect.gen(function*() {
        const { connected, progress, push, put } = yield* connectDevice
        const states = Effect.map(
          progress,
          ({ items }) => items.map(({ configurationId, state }) => `${configurationId} ${state}`)
        )
        const first = yield* put("a")
        yield* push
        assert.strictEqual((yield* connected.take).message.params.configId, first.configurationId)
        yield* connected.say("thing/config/push_reply", { id: "1", code: 200 })
        yield* eventually(states, { until: ([state]) => state === `${first.configurationId} applied` })
        const reply = yield* connected.request(connected.topic("thing/config/get"), { configScope: "product" })
        assert.deepInclude(reply, { code: 200 })
        assert.strictEqual(reply.data.configId, first.configurationId)
        assert.deepStrictEqual(yield* states, [`${first.configurationId} applied`])
        const second = yield* put("b")
        yield* push
        assert.strictEqual((yield* connected.take).message.params.configId, second.configurationId)
        assert.deepStrictEqual(yield* states, [`${second.configurationId} offered`])
      }))
  })
}
