import {
  type Command,
  Commands,
  defaultProjectId,
  type Device,
  DeviceCloud,
  Devices,
  History,
  Products,
  Shadows,
  ThingModels,
  UplinkStore
} from "@device-cloud/core"
import { MqttServer } from "@device-cloud/mqtt"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { assert, layer } from "@effect/vitest"
import { Effect, Latch, Layer, Queue, Schedule } from "effect"
import { generate } from "mqtt-packet"
import { connect as connectTcp } from "node:net"
import { storages } from "../../../vitest.storages.ts"
import { connect as connectTo, credentials, type TestDevice } from "./TestDevice.ts"

const broker = MqttServer.layer({ host: "127.0.0.1", tcp: { port: 0 } })

const cloudOn = <E>(storage: Layer.Layer<DeviceCloud.Stores, E>) =>
  broker.pipe(
    Layer.provideMerge(DeviceCloud.layer),
    Layer.provideMerge(storage),
    Layer.provideMerge(PlatformNode.layer)
  )

const model = {
  properties: [
    { id: "power", name: "Power", accessMode: "rw", dataType: { type: "bool", specs: { 0: "off", 1: "on" } } },
    { id: "level", name: "Level", accessMode: "rw", dataType: { type: "int", min: 0, max: 10 } }
  ],
  events: [{
    id: "alarm",
    name: "Alarm",
    eventType: "alert",
    outputData: [{ id: "code", name: "Code", dataType: { type: "int" } }]
  }],
  services: [{
    id: "reset",
    name: "Reset",
    callType: "async",
    inputData: [{ id: "hard", name: "Hard", dataType: { type: "int" } }]
  }]
}

const createDevice = Effect.gen(function*() {
  const { productKey } = yield* (yield* Products).create(defaultProjectId, {
    name: "Sensor",
    nodeType: "direct",
    networkType: "wifi",
    validateType: "weak",
    dataFormat: "json",
    authType: "secret"
  })
  yield* (yield* ThingModels).importFrom(defaultProjectId, productKey, "metadata", JSON.stringify(model))
  return yield* (yield* Devices).create(defaultProjectId, productKey, {})
})

const connect = (device: Device, options: object = {}) =>
  Effect.flatMap(MqttServer, ({ mqtt }) => connectTo(device, { url: mqtt!, ...options }))

const reported = ({ deviceId }: Device) =>
  Effect.flatMap(
    Shadows,
    (shadows) =>
      Effect.map(shadows.get(defaultProjectId, deviceId), ({ shadow }) =>
        Object.fromEntries(Object.entries(shadow.reported).map(([id, { value }]) => [id, value])))
  )

const set = ({ deviceId }: Device, params: Readonly<Record<string, number>>) =>
  Effect.flatMap(Commands, (commands) => commands.setProperties(defaultProjectId, deviceId, params))

/** Until the ledger says so; the time limit of the test ends it. */
const untilState = ({ deviceId, messageId }: Command, state: string) =>
  Effect.flatMap(Commands, (commands) =>
    Effect.repeat(commands.get(defaultProjectId, deviceId, messageId), {
      until: (command) => command.state === state,
      schedule: Schedule.spaced("5 millis")
    }))

const say = (device: TestDevice, rest: string, message: object, qos: 0 | 1 = 1) =>
  device.publish(device.topic(rest), JSON.stringify(message), qos)

const take = ({ received }: TestDevice) => Queue.take(received)

for (const [name, storage] of storages) {
  layer(cloudOn(storage), { excludeTestServices: true })(`messages of MQTT devices on ${name}`, (it) => {
    it.effect("a property is set: sent, acked by the packet, ended by the reply, reported by the device", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const connected = yield* connect(device)
        const command = yield* set(device, { power: 1, level: 5 })
        const { message, qos, topic } = yield* take(connected)
        assert.deepStrictEqual([topic, qos], [connected.topic("thing/service/property/set"), 1])
        assert.deepStrictEqual(message, {
          id: String(command.messageId),
          version: "1.0.0",
          method: "thing.service.property.set",
          params: { power: 1, level: 5 }
        })
        yield* untilState(command, "acked")
        yield* say(connected, "thing/service/property/set_reply", { id: message["id"], code: 200, data: {} })
        yield* untilState(command, "succeeded")
        assert.deepStrictEqual(yield* reported(device), {})
        yield* connected.post({ power: 1, level: 5 })
        yield* take(connected)
        assert.deepStrictEqual(yield* reported(device), { power: 1, level: 5 })
      }))

    it.effect("a service is called, and its answer may come on any of its topics", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const connected = yield* connect(device)
        const { deviceName, productKey } = device
        const topics = [
          connected.topic("thing/service/reset_reply"),
          connected.topic("rrpc/response/5"),
          `/ext/rrpc/6/sys/${productKey}/${deviceName}/thing/service/reset`
        ]
        for (const topic of topics) {
          const commands = yield* Commands
          const command = yield* commands.callService(defaultProjectId, device.deviceId, "reset", { hard: 1 })
          const { message } = yield* take(connected)
          assert.deepInclude(message, { method: "thing.service.reset", params: { hard: 1 } })
          yield* connected.publish(
            topic,
            JSON.stringify({ id: message["id"], code: 100_001, data: { why: "busy" } }),
            1
          )
          assert.deepInclude(yield* untilState(command, "failed"), { code: 100_001, data: { why: "busy" } })
        }
      }))

    it.effect("what waits is delivered in order after the connection is accepted, in kept sessions too", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        for (const clean of [true, false]) {
          const commands = [yield* set(device, { level: 1 }), yield* set(device, { level: 2 })]
          const connected = yield* connect(device, { options: { clean } })
          const control = yield* take(connected)
          assert.strictEqual(control.topic, `/shadow/get/${device.productKey}/${device.deviceName}`)
          assert.deepInclude(control.message, { method: "control" })
          assert.deepInclude(control.message["payload"], { status: "success" })
          for (const { messageId } of commands) {
            assert.strictEqual((yield* take(connected)).message["id"], String(messageId))
          }
          for (const command of commands) yield* untilState(command, "acked")
          yield* connected.end
          yield* connected.closed
        }
      }))

    it.effect("a device that subscribed with QoS 0 gets commands with QoS 0, which its reply ends", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const connected = yield* connect(device)
        yield* connected.subscribe([connected.topic("thing/service/#")], 0)
        const command = yield* set(device, { level: 1 })
        const { message, qos } = yield* take(connected)
        assert.strictEqual(qos, 0)
        yield* untilState(command, "sent")
        yield* say(connected, "thing/service/property/set_reply", { id: message["id"], code: 200 }, 0)
        yield* untilState(command, "succeeded")
      }))

    it.effect("events, batches, diagnosis and raw bytes are answered on their reply topics", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const connected = yield* connect(device)
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
          yield* say(connected, rest, { id: 42, version: "1.0", params })
          const { message, topic } = yield* take(connected)
          assert.strictEqual(topic, connected.topic(`${rest}_reply`))
          assert.deepInclude(message, { id: 42, code, version: "1.0" }, rest)
        }
        yield* connected.publish(connected.topic("thing/model/up_raw"), Buffer.from([0, 255, 16]), 1)
        assert.deepInclude(yield* take(connected), { topic: connected.topic("thing/model/up_raw_reply") })
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
        const connected = yield* connect(device)
        const own = `${device.productKey}/${device.deviceName}`
        const ask = (message: object | string) =>
          Effect.andThen(
            connected.publish(
              `/shadow/update/${own}`,
              typeof message === "string" ? message : JSON.stringify(message),
              1
            ),
            take(connected)
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
        const control = yield* take(connected)
        assert.deepInclude(control.message, { method: "control", version: 2 })
      }))

    it.effect("tells the time", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const connected = yield* connect(device)
        const own = `${device.productKey}/${device.deviceName}`
        yield* connected.publish(`/ext/ntp/${own}/request`, JSON.stringify({ deviceSendTime: "1795231840050" }), 0)
        const { message, topic } = yield* take(connected)
        assert.strictEqual(topic, `/ext/ntp/${own}/response`)
        assert.strictEqual(message["deviceSendTime"], "1795231840050")
        assert.match(String(message["serverRecvTime"]), /^\d{13}$/)
        assert.match(String(message["serverSendTime"]), /^\d{13}$/)
      }))

    it.effect("numbers that JSON cannot hold are dropped, and no id is lost by them", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const connected = yield* connect(device)
        yield* connected.publish(
          connected.topic("thing/event/property/post"),
          `{"id":1e999,"params":{"level":1e999,"power":1}}`,
          1
        )
        const { message } = yield* take(connected)
        assert.deepInclude(message, { id: "0", code: 200 })
        assert.property(message["data"], "level")
        assert.deepStrictEqual(yield* reported(device), { power: 1 })
      }))
  })
}

const gate = Latch.makeUnsafe(true)

const gatedStorage = Layer.effect(
  UplinkStore,
  Effect.map(UplinkStore, (store): UplinkStore["Service"] => ({
    ...store,
    commit: (batch) => Effect.andThen(gate.await, store.commit(batch))
  }))
).pipe(Layer.provideMerge(StorageMemory.layer))

layer(cloudOn(gatedStorage), { excludeTestServices: true })("while the store is slow", (it) => {
  it.effect("a packet of QoS 2 that comes again is confirmed when it is stored, and stored once", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const { mqtt } = yield* MqttServer
      const { port } = new URL(mqtt!)
      const packets = yield* Queue.unbounded<number>()
      const socket = yield* Effect.acquireRelease(
        Effect.sync(() => connectTcp(Number(port), "127.0.0.1")),
        (socket) => Effect.sync(() => socket.destroy())
      )
      socket.on("data", (bytes: Buffer) => {
        // The first byte of each packet; all of them are short.
        for (let at = 0; at < bytes.length; at += 2 + bytes[at + 1]!) Queue.offerUnsafe(packets, bytes[at]! >> 4)
      })
      const write = (packet: object) => Effect.sync(() => socket.write(generate(packet as never)))
      yield* write({
        cmd: "connect",
        protocolId: "MQTT",
        protocolVersion: 4,
        clean: true,
        keepalive: 60,
        ...credentials(device, { url: mqtt! })
      })
      assert.strictEqual(yield* Queue.take(packets), 2)
      yield* gate.close
      const publish = {
        cmd: "publish",
        topic: `/sys/${device.productKey}/${device.deviceName}/thing/event/property/post`,
        payload: JSON.stringify({ id: "1", sys: { ack: 0 }, params: { level: 1 } }),
        qos: 2,
        messageId: 7,
        dup: false,
        retain: false
      }
      yield* write(publish)
      yield* write({ ...publish, dup: true })
      yield* write({ cmd: "pingreq" })
      // Nothing is confirmed while nothing is stored.
      assert.strictEqual(yield* Queue.take(packets), 13)
      yield* gate.open
      assert.deepStrictEqual([yield* Queue.take(packets), yield* Queue.take(packets)], [5, 5])
      yield* write({ ...publish, dup: true })
      assert.strictEqual(yield* Queue.take(packets), 5)
      yield* write({ cmd: "pubrel", messageId: 7 })
      assert.strictEqual(yield* Queue.take(packets), 7)
      const samples = yield* (yield* History).properties(defaultProjectId, device.deviceId, "level", {
        start: 0,
        end: 8.64e15,
        limit: 10,
        order: "asc"
      })
      assert.strictEqual(samples.length, 1)
    }))
})
