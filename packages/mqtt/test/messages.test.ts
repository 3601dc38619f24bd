import {
  Broadcasts,
  Commands,
  defaultProjectId,
  type Device,
  type DeviceId,
  History,
  Shadows,
  ThingModels,
  ThingModelStore
} from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { CloudState, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue } from "effect"
import { readFileSync } from "node:fs"
import { storages } from "../../../vitest.storages.ts"
import * as GatedStorage from "./GatedStorage.ts"

const tsl = readFileSync(new URL("../../core/test/fixtures/air-conditioner.tsl.json", import.meta.url), "utf8")

const createDevice = Effect.flatMap(Fixtures.createProductWithModel(), Fixtures.createDevice)

const set = ({ deviceId }: Device, params: Readonly<Record<string, number>>) =>
  Effect.flatMap(Commands, (commands) => commands.setProperties(defaultProjectId, deviceId, params))

/** Asks the device for something on a user topic. */
const call = (deviceId: DeviceId, wait: number) =>
  Effect.flatMap(Commands, (commands) =>
    commands.sendUserMessage(
      defaultProjectId,
      deviceId,
      { topic: "display/text", payload: "\"?\"", encoding: "utf8" },
      { wait }
    ))

for (const [name, storage] of storages) {
  layer(MqttTestServer.layer(storage), { excludeTestServices: true })(`messages of MQTT devices on ${name}`, (it) => {
    it.effect("a property is set: sent, acked by the packet, ended by the reply, reported by the device", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const connected = yield* MqttDevice.connect(device)
        const command = yield* set(device, { power: 1, level: 5 })
        const { message, qos, topic } = yield* connected.take
        assert.deepStrictEqual([topic, qos], [connected.topic("thing/service/property/set"), 1])
        assert.deepStrictEqual(message, {
          id: String(command.messageId),
          version: "1.0.0",
          method: "thing.service.property.set",
          params: { power: 1, level: 5 }
        })
        yield* CloudState.untilState(command, "acked")
        yield* connected.say("thing/service/property/set_reply", { id: message["id"], code: 200, data: {} })
        yield* CloudState.untilState(command, "succeeded")
        assert.deepStrictEqual(yield* CloudState.reported(device), {})
        yield* connected.post({ power: 1, level: 5 })
        yield* connected.take
        assert.deepStrictEqual(yield* CloudState.reported(device), { power: 1, level: 5 })
      }))

    it.effect("a service is called, and its answer may come on any of its topics", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const connected = yield* MqttDevice.connect(device)
        const { deviceName, productKey } = device
        const topics = [
          connected.topic("thing/service/reset_reply"),
          connected.topic("rrpc/response/5"),
          `/ext/rrpc/6/sys/${productKey}/${deviceName}/thing/service/reset`
        ]
        for (const topic of topics) {
          const commands = yield* Commands
          const command = yield* commands.callService(defaultProjectId, device.deviceId, "reset", { hard: 1 })
          const { message } = yield* connected.take
          assert.deepInclude(message, { method: "thing.service.reset", params: { hard: 1 } })
          yield* connected.publish(
            topic,
            JSON.stringify({ id: message["id"], code: 100_001, data: { why: "busy" } }),
            1
          )
          assert.deepInclude(yield* CloudState.untilState(command, "failed"), { code: 100_001, data: { why: "busy" } })
        }
      }))

    it.effect("a synchronous service is called on the topic that the device has subscribed to, else on its own", () =>
      Effect.gen(function*() {
        const product = yield* Fixtures.createProduct()
        yield* (yield* ThingModels).importFrom(defaultProjectId, product.productKey, "tsl", tsl)
        const device = yield* Fixtures.createDevice(product)
        const connected = yield* MqttDevice.connect(device)
        const commands = yield* Commands
        const service = connected.topic("thing/service/Measure")
        const extended = (id: unknown) => `/ext/rrpc/${id}${service}`
        const ways = [
          { filter: undefined, topic: () => service, reply: () => `${service}_reply` },
          { filter: extended("+"), topic: extended, reply: extended },
          {
            filter: connected.topic("rrpc/request/+"),
            topic: (id: unknown) => connected.topic(`rrpc/request/${id}`),
            reply: (id: unknown) => connected.topic(`rrpc/response/${id}`)
          }
        ]
        for (const way of ways) {
          if (way.filter !== undefined) assert.deepStrictEqual(yield* connected.subscribe([way.filter]), [1])
          const calling = yield* Effect.forkScoped(
            commands.request(defaultProjectId, device.deviceId, "Measure", {}, { wait: 30 })
          )
          const { message, topic } = yield* connected.take
          assert.deepInclude(message, { method: "thing.service.Measure", params: {} })
          const { id } = message
          assert.strictEqual(topic, way.topic(id))
          yield* connected.publish(way.reply(id), JSON.stringify({ id, code: 200, data: { length: 3 } }))
          const { command } = yield* Fiber.join(calling)
          assert.deepInclude(command, { state: "succeeded", data: { length: 3 }, deliveries: 1 })
        }
      }))

    it.effect("a call on a topic of the application waits for the bytes of the reply", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const connected = yield* MqttDevice.connect(device)
        const own = `${device.productKey}/${device.deviceName}/user`
        assert.deepStrictEqual(yield* connected.subscribe([`/ext/rrpc/+/${own}/#`]), [1])
        assert.deepStrictEqual(yield* connected.subscribe(["/ext/rrpc/+/other/device/user/#"]), [128])
        const replies = [
          ["\"grüße\"", { payload: "\"grüße\"", encoding: "utf8" }],
          [Buffer.from([1, 0, 255]), { payload: "AQD/", encoding: "base64" }],
          [Buffer.from("a\0b"), { payload: "YQBi", encoding: "base64" }]
        ] as const
        for (const [reply, data] of replies) {
          const calling = yield* Effect.forkScoped(call(device.deviceId, 30))
          const { message, topic } = yield* connected.take
          const [, , , id] = topic.split("/")
          assert.deepStrictEqual([topic, message], [`/ext/rrpc/${id}/${own}/display/text`, "?"])
          yield* connected.publish(topic, reply)
          const { command, hasWaited } = yield* Fiber.join(calling)
          assert.isTrue(hasWaited)
          assert.deepInclude(command, { messageId: Number(id), state: "succeeded", code: 200, data, deliveries: 1 })
        }
        assert.deepStrictEqual(yield* CloudState.events(device, "user"), [])
        // Nobody waits: the packet's confirmation ends it.
        const { command } = yield* call(device.deviceId, 0)
        assert.strictEqual((yield* connected.take).topic, `/${own}/display/text`)
        yield* CloudState.untilState(command, "succeeded")
      }))

    it.effect("a call without a reply in time goes on, and one to a device that is away is not made", () =>
      Effect.gen(function*() {
        const [device, other] = yield* Fixtures.createDevices(2)
        const away = yield* Effect.flip(call(device!.deviceId, 1))
        assert.strictEqual(away._tag, "DeviceNotConnected")
        const connected = yield* MqttDevice.connect(device!)
        const stranger = yield* MqttDevice.connect(other!)
        const late = yield* Effect.flip(call(device!.deviceId, 0.2))
        assert.strictEqual(late._tag, "NoReply")
        const { topic } = yield* connected.take
        const messageId = Number(topic.split("/")[3])
        const command = yield* (yield* Commands).get(defaultProjectId, device!.deviceId, messageId)
        // The reply of another device does not count.
        yield* stranger.publish(
          `/ext/rrpc/${messageId}/${other!.productKey}/${other!.deviceName}/user/display/text`,
          "x"
        )
        yield* stranger.request(stranger.topic("thing/event/property/post"), {})
        yield* CloudState.untilState(command, "acked")
        yield* connected.publish(topic, "late")
        assert.deepInclude(yield* CloudState.untilState(command, "succeeded"), {
          data: { payload: "late", encoding: "utf8" }
        })
      }))

    it.effect("a broadcast reaches the devices of the product that have subscribed to it, once each", () =>
      Effect.gen(function*() {
        const product = yield* Fixtures.createProduct()
        const [first, second, deaf] = yield* Fixtures.createDevices(3, product)
        const stranger = yield* MqttDevice.connect(yield* Fixtures.createDevice())
        const { productKey } = product
        const topic = `/broadcast/${productKey}/alerts/storm`
        const connected = [
          yield* MqttDevice.connect(first!),
          yield* MqttDevice.connect(second!, { options: { clean: false } }),
          yield* MqttDevice.connect(deaf!)
        ] as const
        assert.deepStrictEqual(yield* connected[0].subscribe([topic, `/broadcast/${productKey}/#`]), [1, 1])
        assert.deepStrictEqual(yield* connected[1].subscribe([topic], 0), [0])
        for (const filter of [topic, "/broadcast/#", "/broadcast/+/alerts/storm", `/broadcast/${productKey}`]) {
          assert.deepStrictEqual(yield* stranger.subscribe([filter]), [128], filter)
        }
        // A kept session keeps its subscription.
        yield* connected[1].end
        yield* connected[1].closed
        const back = yield* MqttDevice.connect(second!, { options: { clean: false } })
        const broadcasts = yield* Broadcasts
        yield* broadcasts.send(defaultProjectId, productKey, {
          topic: "alerts/storm",
          payload: "InN0b3JtIg==",
          encoding: "base64"
        })
        assert.deepStrictEqual(yield* connected[0].take, { topic, qos: 1, message: "storm" })
        assert.deepStrictEqual(yield* back.take, { topic, qos: 0, message: "storm" })
        const tooMany = yield* Effect.flip(
          broadcasts.send(defaultProjectId, productKey, { topic: "a", payload: "", encoding: "utf8" })
        )
        assert.strictEqual(tooMany._tag, "TooManyBroadcasts")
        for (const each of [connected[0], back, connected[2], stranger]) {
          yield* each.request(each.topic("thing/event/property/post"), {})
          assert.strictEqual(yield* Queue.size(each.received), 0)
        }
      }))

    it.effect("a broadcast whose topic looks like that of a user message reaches who has subscribed to all", () =>
      Effect.gen(function*() {
        const product = yield* Fixtures.createProduct()
        const { productKey } = product
        const connected = yield* MqttDevice.connect(yield* Fixtures.createDevice(product))
        assert.deepStrictEqual(yield* connected.subscribe([`/broadcast/${productKey}/#`]), [1])
        const broadcast = { topic: "user/alerts", payload: "1", encoding: "utf8" } as const
        yield* (yield* Broadcasts).send(defaultProjectId, productKey, broadcast)
        assert.deepInclude(yield* connected.take, { topic: `/broadcast/${productKey}/user/alerts` })
      }))

    it.effect("what waits is delivered in order after the connection is accepted, in kept sessions too", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        for (const clean of [true, false]) {
          const commands = [yield* set(device, { level: 1 }), yield* set(device, { level: 2 })]
          const connected = yield* MqttDevice.connect(device, { options: { clean } })
          for (const { messageId } of commands) {
            assert.strictEqual((yield* connected.take).message["id"], String(messageId))
          }
          for (const command of commands) {
            yield* CloudState.untilState(command, "acked")
            yield* connected.say("thing/service/property/set_reply", { id: String(command.messageId), code: 200 })
            yield* CloudState.untilState(command, "succeeded")
          }
          yield* connected.end
          yield* connected.closed
        }
      }))

    it.effect("a device that subscribed with QoS 0 gets commands with QoS 0, which its reply ends", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const connected = yield* MqttDevice.connect(device)
        yield* connected.subscribe([connected.topic("thing/service/#")], 0)
        const command = yield* set(device, { level: 1 })
        const { message, qos } = yield* connected.take
        assert.strictEqual(qos, 0)
        yield* CloudState.untilState(command, "sent")
        yield* connected.say("thing/service/property/set_reply", { id: message["id"], code: 200 }, 0)
        yield* CloudState.untilState(command, "succeeded")
      }))

    it.effect("events, batches, diagnosis and raw bytes are answered on their reply topics", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const connected = yield* MqttDevice.connect(device)
        const messages: ReadonlyArray<readonly [rest: string, params: unknown, code: number]> = [
          ["thing/event/alarm/post", { code: 7 }, 200],
          ["thing/event/alarm/post", { value: { code: 8 }, time: 1 }, 200],
          ["thing/event/alarm/post", { code: "x" }, 6306],
          ["thing/event/property/batch/post", { properties: { level: [{ value: 1, time: 1 }] } }, 200],
          ["thing/event/property/history/post", [{ properties: [{ level: { value: 2, time: 2 } }] }], 200],
          ["_thing/diag/post", { p: { wifi: { rssi: -75 } }, model: "format=simple" }, 200],
          ["thing/deviceinfo/update", [{ attrKey: "site", attrValue: "1" }], 200],
          ["thing/property/desired/get", ["level"], 200],
          ["thing/config/log/get", { configScope: "device", getType: "content" }, 200],
          ["thing/dsltemplate/get", "{}", 200],
          ["thing/unknown/post", {}, 6203]
        ]
        for (const [rest, params, code] of messages) {
          yield* connected.say(rest, { id: 42, version: "1.0", params })
          const { message, topic } = yield* connected.take
          assert.strictEqual(topic, connected.topic(`${rest}_reply`))
          assert.deepInclude(message, { id: 42, code, version: "1.0" }, rest)
        }
        yield* connected.publish(connected.topic("thing/model/up_raw"), Buffer.from([0, 255, 16]), 1)
        assert.deepInclude(yield* connected.take, { topic: connected.topic("thing/model/up_raw_reply") })
        const history = yield* History
        const range = { start: 0, end: 8.64e15, limit: 10, order: "asc" } as const
        const events = yield* history.events(defaultProjectId, device.deviceId, undefined, range)
        assert.deepStrictEqual(events.map(({ eventId, value }) => [eventId, value]), [
          ["alarm", { code: 8 }],
          ["alarm", { code: 7 }],
          ["diag", { p: { wifi: { rssi: -75 } }, model: "format=simple" }],
          ["raw", "00ff10"]
        ])
        const levels = yield* history.properties(defaultProjectId, device.deviceId, "level", range)
        assert.deepStrictEqual(levels.map(({ value }) => value), [1, 2])
      }))

    it.effect("a device works on its shadow, and is told on its shadow topic", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const connected = yield* MqttDevice.connect(device)
        const own = `${device.productKey}/${device.deviceName}`
        const ask = (message: object | string) =>
          Effect.andThen(
            connected.publish(
              `/shadow/update/${own}`,
              typeof message === "string" ? message : JSON.stringify(message),
              1
            ),
            connected.take
          )
        const updated = yield* ask({
          method: "update",
          state: { reported: { level: 3 } },
          version: 1,
          clientToken: "token-1"
        })
        assert.strictEqual(updated.topic, `/shadow/get/${own}`)
        const { timestamp, ...reply } = updated.message
        assert.isNumber(timestamp)
        assert.deepStrictEqual(reply, {
          method: "reply",
          payload: { status: "success", version: 1 },
          clientToken: "token-1"
        })
        const got = (yield* ask({ method: "get" })).message
        assert.deepInclude(got, { method: "reply", version: 1 })
        assert.deepInclude(got["payload"], { status: "success", state: { reported: { level: 3 }, desired: {} } })
        const conflict = (yield* ask({ method: "update", state: { reported: { level: 4 } }, version: 1 })).message
        assert.deepInclude(conflict["payload"], {
          status: "error",
          content: { errorcode: "409", errormessage: "Version conflict." }
        })
        assert.deepInclude((yield* ask("{")).message["payload"], {
          content: { errorcode: "400", errormessage: "Invalid JSON." }
        })
        yield* (yield* Shadows).desire(defaultProjectId, device.deviceId, { level: 9 })
        const control = yield* connected.take
        assert.deepInclude(control.message, { method: "control", version: 2 })
      }))

    it.effect("tells the time", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const connected = yield* MqttDevice.connect(device)
        const own = `${device.productKey}/${device.deviceName}`
        yield* connected.publish(`/ext/ntp/${own}/request`, JSON.stringify({ deviceSendTime: "1795231840050" }), 0)
        const { message, topic } = yield* connected.take
        assert.strictEqual(topic, `/ext/ntp/${own}/response`)
        assert.strictEqual(message["deviceSendTime"], "1795231840050")
        assert.match(String(message["serverRecvTime"]), /^\d{13}$/)
        assert.match(String(message["serverSendTime"]), /^\d{13}$/)
      }))

    it.effect("numbers that JSON cannot hold are dropped, and no id is lost by them", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const connected = yield* MqttDevice.connect(device)
        yield* connected.publish(
          connected.topic("thing/event/property/post"),
          `{"id":1e999,"params":{"level":1e999,"power":1}}`,
          1
        )
        const { message } = yield* connected.take
        assert.deepInclude(message, { id: "0", code: 200 })
        assert.property(message["data"], "level")
        assert.deepStrictEqual(yield* CloudState.reported(device), { power: 1 })
      }))
  })
}

layer(MqttTestServer.layer(GatedStorage.layer), { excludeTestServices: true })("while the store is slow", (it) => {
  it.effect("requests that are no reports do not wait for reports", () =>
    Effect.gen(function*() {
      const connected = yield* MqttDevice.connect(yield* createDevice)
      yield* GatedStorage.gate.close
      yield* connected.publish(
        connected.topic("thing/event/property/post"),
        JSON.stringify({ params: { level: 1 } }),
        0
      )
      const tags = yield* connected.request(connected.topic("thing/deviceinfo/get"), {})
      assert.deepStrictEqual([tags.code, tags.data], [200, []])
      for (const rest of ["thing/config/log/get", "thing/dsltemplate/get", "thing/ota/firmware/get"]) {
        assert.strictEqual((yield* connected.request(connected.topic(rest), {})).code, 200, rest)
      }
      assert.strictEqual((yield* connected.request(connected.topic("thing/config/get"), {})).code, 6713)
      yield* GatedStorage.gate.open
      assert.strictEqual((yield* connected.takeFrom(connected.topic("thing/event/property/post_reply"))).code, 200)
    }))

  it.effect("a packet of QoS 2 that comes again is confirmed when it is stored, and stored once", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const socket = yield* RawMqttSocket.connect(device)
      const next = Effect.map(socket.take, ({ cmd }) => cmd)
      yield* GatedStorage.gate.close
      const publish = RawMqttSocket.post(device, { level: 1 }, { qos: 2, messageId: 7 })
      const again = { ...publish, dup: true }
      yield* socket.write(publish)
      yield* socket.write(again)
      yield* socket.write({ cmd: "pingreq" })
      // Nothing is confirmed while nothing is stored.
      assert.strictEqual(yield* next, "pingresp")
      yield* GatedStorage.gate.open
      assert.deepStrictEqual([yield* next, yield* next], ["pubrec", "pubrec"])
      yield* socket.write(again)
      assert.strictEqual(yield* next, "pubrec")
      yield* socket.write({ cmd: "pubrel", messageId: 7 })
      assert.strictEqual(yield* next, "pubcomp")
      assert.deepStrictEqual(yield* CloudState.samples(device, "level"), [1])
    }))
})

let modelsRead = 0

const countedStorage = Layer.effect(
  ThingModelStore,
  Effect.map(ThingModelStore, (store): ThingModelStore["Service"] => ({
    ...store,
    latest: (productKey) => {
      modelsRead++
      return store.latest(productKey)
    }
  }))
).pipe(Layer.provideMerge(StorageMemory.layer))

layer(MqttTestServer.layer(countedStorage), { excludeTestServices: true })("the thing model of a device", (it) => {
  it.effect("is read and encoded once for many requests, and anew when it has changed", () =>
    Effect.gen(function*() {
      const models = yield* ThingModels
      const product = yield* Fixtures.createProductWithModel()
      const connected = yield* MqttDevice.connect(yield* Fixtures.createDevice(product))
      const topic = connected.topic("thing/dsltemplate/get")
      const readBefore = modelsRead
      for (const id of ["1", 2, "\"ü,}"]) {
        for (let i = 0; i < 10; i++) {
          yield* connected.publish(topic, JSON.stringify({ id, params: {} }), 1)
          const { data, ...rest } = yield* connected.takeFrom(`${topic}_reply`)
          assert.deepStrictEqual(rest, {
            code: 200,
            id,
            message: "success",
            method: "thing.dsltemplate.get",
            version: "1.0"
          })
          assert.deepStrictEqual(
            data.properties.map(({ identifier }: { readonly identifier: string }) => identifier),
            ["power", "level"]
          )
        }
      }
      assert.strictEqual(modelsRead - readBefore, 1)
      yield* models.removeElement(defaultProjectId, product.productKey, "property", "power")
      const { data } = yield* connected.request(topic, {})
      assert.lengthOf(data.properties, 1)
      yield* models.clear(defaultProjectId, product.productKey)
      assert.deepStrictEqual((yield* connected.request(topic, {})).data.properties, [])
    }))
})
