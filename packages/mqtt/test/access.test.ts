import {
  Commands,
  defaultProjectId,
  type Device,
  Devices,
  History,
  Mac,
  type Product,
  Products,
  type SignMethod
} from "@device-cloud/core"
import { MqttServer } from "@device-cloud/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect, Queue, Schedule } from "effect"
import { request } from "node:http"
import { storages } from "../../../vitest.storages.ts"
import { brokerOn, tcp, tls, WebSocketUrl } from "./TestBroker.ts"
import { connackOf, connect, type ConnectOptions } from "./TestDevice.ts"

const createProduct = (dynamicRegister = false) =>
  Effect.flatMap(Products, (products) =>
    products.create(defaultProjectId, {
      name: "Sensor",
      nodeType: "direct",
      networkType: "wifi",
      validateType: "weak",
      dataFormat: "json",
      authType: "secret",
      dynamicRegister
    }))

const createDevice = Effect.fnUntraced(function*(product?: Product) {
  const { productKey } = product ?? (yield* createProduct())
  return yield* (yield* Devices).create(defaultProjectId, productKey, {})
})

/** The fields of a CONNECT by which a device asks to register. */
const registration = Effect.fnUntraced(function*(
  { productKey, productSecret }: Product,
  deviceName: string,
  authType: "register" | "regnwl",
  signMethod: SignMethod = "hmacsha256"
) {
  const random = "1234567890"
  const text = `deviceName${deviceName}productKey${productKey}random${random}`
  const options: Partial<ConnectOptions> = {
    clientId: `${productKey}.${deviceName}`,
    extension: `|authType=${authType},random=${random},signmethod=${signMethod},securemode=2|`,
    username: `${deviceName}&${productKey}`,
    password: (yield* Mac).sign(signMethod, productSecret, text).toUpperCase()
  }
  return { triple: { productKey, deviceName: deviceName as Device["deviceName"], deviceSecret: "" }, options }
})

const eventsOf = ({ deviceId }: Device, eventId: string) =>
  Effect.flatMap(
    History,
    (history) =>
      history.events(defaultProjectId, deviceId, eventId, { start: 0, end: 8.64e15, limit: 10, order: "desc" })
  )

for (const [name, storage] of storages) {
  layer(brokerOn(storage), { excludeTestServices: true })(`ways into the broker on ${name}`, (it) => {
    it.effect("a device that was created beforehand is told its secret, and connects with it", () =>
      Effect.gen(function*() {
        const product = yield* createProduct(true)
        const { deviceName, deviceSecret, productKey } = yield* createDevice(product)
        const { options, triple } = yield* registration(product, deviceName, "register")
        const asking = yield* connect(triple, { ...yield* tls, ...options })
        assert.deepStrictEqual(yield* Queue.take(asking.received), {
          topic: "/ext/register",
          qos: 0,
          message: { productKey, deviceName, deviceSecret }
        })
        // It is nobody yet: nothing of what it says counts.
        yield* asking.publish(`/sys/${productKey}/${deviceName}/thing/event/property/post`, "{}")
        yield* asking.closed
        yield* connect({ productKey, deviceName, deviceSecret }, yield* tls)
        assert.strictEqual(yield* connackOf(triple, { ...yield* tls, ...options }), 5)
      }))

    it.effect("a device that nobody has created registers, and connects with its token", () =>
      Effect.gen(function*() {
        const product = yield* createProduct(true)
        const { options, triple } = yield* registration(product, "lamp-1.kitchen", "regnwl")
        const asking = yield* connect(triple, { ...yield* tls, ...options })
        const { message, topic } = yield* Queue.take(asking.received)
        assert.strictEqual(topic, "/ext/regnwl")
        assert.deepInclude(message, { productKey: product.productKey, deviceName: "lamp-1.kitchen" })
        const { clientId, deviceToken } = message as Readonly<Record<string, string>>
        const withToken = {
          ...yield* tls,
          clientId: clientId!,
          extension: "|authType=connwl,securemode=-2,_ss=1,ext=3|",
          username: options.username!
        }
        assert.strictEqual(yield* connackOf(triple, { ...withToken, password: "0".repeat(64) }), 4)
        const device = yield* connect(triple, { ...withToken, password: deviceToken! })
        yield* device.post({ on: 1 })
        assert.deepInclude((yield* Queue.take(device.received)).message, { code: 200 })
      }))

    it.effect("nobody registers without TLS, without the product's secret, or where registration is off", () =>
      Effect.gen(function*() {
        const product = yield* createProduct(true)
        const device = yield* createDevice(product)
        const { options, triple } = yield* registration(product, device.deviceName, "register")
        assert.strictEqual(yield* connackOf(triple, { ...yield* tcp, ...options }), 5)
        assert.strictEqual(yield* connackOf(triple, { ...yield* tls, ...options, password: "00" }), 4)
        const off = yield* createProduct(false)
        const closed = yield* registration(off, "anything", "regnwl")
        assert.strictEqual(yield* connackOf(closed.triple, { ...yield* tls, ...closed.options }), 5)
        const unknown = yield* registration(product, "unknown", "register")
        assert.strictEqual(yield* connackOf(unknown.triple, { ...yield* tls, ...unknown.options }), 4)
      }))

    it.effect("devices and browsers connect over WebSocket, and everything works as over TCP", () =>
      Effect.gen(function*() {
        const device = yield* createDevice()
        const { http, url } = yield* WebSocketUrl
        const connected = yield* connect(device, { url })
        yield* connected.post({ on: 1 }, { qos: 1 })
        assert.deepInclude((yield* Queue.take(connected.received)).message, { code: 200 })
        const { messageId } = yield* (yield* Commands).setProperties(defaultProjectId, device.deviceId, { on: 0 })
        assert.deepInclude((yield* Queue.take(connected.received)).message, { id: String(messageId) })
        // A packet that spans several WebSocket messages.
        yield* connected.post({ text: "x".repeat(100_000) }, { qos: 1 })
        assert.deepInclude((yield* Queue.take(connected.received)).message, { code: 200 })
        const { device: { ip } } = yield* (yield* Devices).get(defaultProjectId, { deviceId: device.deviceId })
        assert.strictEqual(ip, "127.0.0.1")
        const other = yield* Effect.callback<number>((resume) => {
          const asking = request(`${http}/other`, { headers: { connection: "Upgrade", upgrade: "websocket" } })
          asking.on("response", (response) => resume(Effect.succeed(response.statusCode ?? 0)))
          asking.on("error", () => resume(Effect.succeed(0)))
          asking.end()
        })
        assert.strictEqual(other, 418)
        yield* connected.end
        yield* Effect.repeat((yield* Devices).get(defaultProjectId, { deviceId: device.deviceId }), {
          until: ({ device: { status } }) => status === "offline",
          schedule: Schedule.spaced("5 millis")
        })
      }))

    it.effect("bytes travel both ways on topics of the application, and wait for a device that is away", () =>
      Effect.gen(function*() {
        const device = yield* createDevice()
        const commands = yield* Commands
        const topic = `/${device.productKey}/${device.deviceName}/user/`
        const first = yield* commands.sendUserMessage(defaultProjectId, device.deviceId, {
          topic: "config/led",
          payload: JSON.stringify({ on: true }),
          encoding: "utf8"
        })
        const connected = yield* connect(device, yield* tcp)
        assert.deepStrictEqual(yield* Queue.take(connected.received), {
          topic: `${topic}config/led`,
          qos: 1,
          message: { on: true }
        })
        yield* Effect.repeat(commands.get(defaultProjectId, device.deviceId, first.messageId), {
          until: ({ state }) => state === "succeeded",
          schedule: Schedule.spaced("5 millis")
        })
        yield* connected.publish(`${topic}log/a`, "grüße", 1)
        yield* connected.publish(`${topic}raw`, Buffer.from([0xff, 0x00]), 1)
        yield* connected.publish(topic.slice(0, -1), "nothing", 1)
        yield* connected.publish(topic, "nothing", 1)
        assert.deepStrictEqual((yield* eventsOf(device, "user")).map(({ value }) => value), [
          { topic: "raw", payload: "/wA=", encoding: "base64" },
          { topic: "log/a", payload: "grüße", encoding: "utf8" }
        ])
        for (const wrong of ["", "/a", "a/#", "a+", "a?b", "a".repeat(101)]) {
          const refused = yield* Effect.flip(
            commands.sendUserMessage(defaultProjectId, device.deviceId, { topic: wrong, payload: "", encoding: "utf8" })
          )
          assert.strictEqual(refused._tag, "InvalidInput", wrong)
        }
      }))

    it.effect("a device is asked for its logs when its diagnosis is switched on", () =>
      Effect.gen(function*() {
        const device = yield* createDevice()
        const connected = yield* connect(device, yield* tcp)
        const ask = connected.publish(
          connected.topic("thing/config/log/get"),
          JSON.stringify({ id: "1", params: { getType: "content", configScope: "device" } })
        )
        const mode = (value: number) => ({ getType: "content", content: { mode: value } })
        yield* ask
        assert.deepStrictEqual((yield* Queue.take(connected.received)).message["data"], mode(0))
        yield* (yield* Devices).setDiagnosis(defaultProjectId, device.deviceId, true)
        const pushed = yield* Queue.take(connected.received)
        assert.deepStrictEqual([pushed.topic, pushed.message["params"]], [
          connected.topic("thing/config/log/push"),
          mode(1)
        ])
        yield* ask
        assert.deepStrictEqual((yield* Queue.take(connected.received)).message["data"], mode(1))
      }))
  })
}

layer(brokerOn(storages[0][1]), { excludeTestServices: true })("wrong signatures over MQTT", (it) => {
  it.effect("ten in a minute shut the device and the address out", () =>
    Effect.gen(function*() {
      const [device, other] = [yield* createDevice(), yield* createDevice()]
      const early = yield* connect(other, yield* tcp)
      for (let i = 0; i < 10; i++) {
        assert.strictEqual(yield* connackOf(device, { ...yield* tcp, password: "00" }), 4)
      }
      assert.strictEqual(yield* connackOf(device, yield* tcp), 5)
      assert.strictEqual(yield* connackOf(other, yield* tcp), 5)
      // Who is connected already stays.
      yield* early.post({ on: 1 })
      assert.deepInclude((yield* Queue.take(early.received)).message, { code: 200 })
      assert.isDefined((yield* MqttServer).mqtt)
    }))
})
