import {
  Commands,
  defaultProjectId,
  type Device,
  Devices,
  Mac,
  type Product,
  type SignMethod
} from "@device-cloud/core"
import { MqttServer, MqttWebSocket } from "@device-cloud/mqtt"
import { CloudState, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { createServer, request } from "node:http"
import type { AddressInfo } from "node:net"
import { storages } from "../../../vitest.storages.ts"

/** The fields of a CONNECT by which a device asks to register. */
const registration = Effect.fnUntraced(function*(
  { productKey, productSecret }: Product,
  deviceName: string,
  authType: "register" | "regnwl",
  signMethod: SignMethod = "hmacsha256"
) {
  const random = "1234567890"
  const text = `deviceName${deviceName}productKey${productKey}random${random}`
  const options: MqttDevice.ConnectOptions = {
    clientId: `${productKey}.${deviceName}`,
    extension: `|authType=${authType},random=${random},signmethod=${signMethod},securemode=2|`,
    username: `${deviceName}&${productKey}`,
    password: (yield* Mac).sign(signMethod, productSecret, text).toUpperCase()
  }
  return { triple: { productKey, deviceName: deviceName as Device["deviceName"], deviceSecret: "" }, options }
})

/** The status of the response to a request for an upgrade. */
const upgradeStatus = (url: string) =>
  Effect.callback<number>((resume) => {
    const asking = request(url, { headers: { connection: "Upgrade", upgrade: "websocket" } })
    asking.on("response", (response) => resume(Effect.succeed(response.statusCode ?? 0)))
    asking.on("error", () => resume(Effect.succeed(0)))
    asking.end()
  })

for (const [name, storage] of storages) {
  layer(MqttTestServer.layer(storage), { excludeTestServices: true })(`ways into the broker on ${name}`, (it) => {
    it.effect("a device that was created beforehand is told its secret, and connects with it", () =>
      Effect.gen(function*() {
        const product = yield* Fixtures.createProduct({ dynamicRegister: true })
        const { deviceName, deviceSecret, productKey } = yield* Fixtures.createDevice(product)
        const { options, triple } = yield* registration(product, deviceName, "register")
        const asking = yield* MqttDevice.connect(triple, { over: "tls", ...options })
        assert.deepStrictEqual(yield* asking.take, {
          topic: "/ext/register",
          qos: 0,
          message: { productKey, deviceName, deviceSecret }
        })
        // It is nobody yet: nothing of what it says counts.
        yield* asking.publish(`/sys/${productKey}/${deviceName}/thing/event/property/post`, "{}")
        yield* asking.closed
        yield* MqttDevice.connect({ productKey, deviceName, deviceSecret }, { over: "tls" })
        assert.strictEqual(yield* MqttDevice.connack(triple, { over: "tls", ...options }), 5)
      }))

    it.effect("a device that nobody has created registers, and connects with its token", () =>
      Effect.gen(function*() {
        const product = yield* Fixtures.createProduct({ dynamicRegister: true })
        const { options, triple } = yield* registration(product, "lamp-1.kitchen", "regnwl")
        const asking = yield* MqttDevice.connect(triple, { over: "tls", ...options })
        const { message, topic } = yield* asking.take
        assert.strictEqual(topic, "/ext/regnwl")
        assert.deepInclude(message, { productKey: product.productKey, deviceName: "lamp-1.kitchen" })
        const { clientId, deviceToken } = message as Readonly<Record<string, string>>
        const withToken = {
          over: "tls",
          clientId: clientId!,
          extension: "|authType=connwl,securemode=-2,_ss=1,ext=3|",
          username: options.username!
        } as const
        assert.strictEqual(yield* MqttDevice.connack(triple, { ...withToken, password: "0".repeat(64) }), 4)
        const device = yield* MqttDevice.connect(triple, { ...withToken, password: deviceToken! })
        yield* device.post({ on: 1 })
        assert.deepInclude((yield* device.take).message, { code: 200 })
      }))

    it.effect("nobody registers without TLS, without the product's secret, or where registration is off", () =>
      Effect.gen(function*() {
        const product = yield* Fixtures.createProduct({ dynamicRegister: true })
        const device = yield* Fixtures.createDevice(product)
        const { options, triple } = yield* registration(product, device.deviceName, "register")
        assert.strictEqual(yield* MqttDevice.connack(triple, options), 5)
        assert.strictEqual(yield* MqttDevice.connack(triple, { over: "tls", ...options, password: "00" }), 4)
        const off = yield* Fixtures.createProduct()
        const closed = yield* registration(off, "anything", "regnwl")
        assert.strictEqual(yield* MqttDevice.connack(closed.triple, { over: "tls", ...closed.options }), 5)
        const unknown = yield* registration(product, "unknown", "register")
        assert.strictEqual(yield* MqttDevice.connack(unknown.triple, { over: "tls", ...unknown.options }), 4)
      }))

    it.effect("devices and browsers connect over WebSocket, and everything works as over TCP", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const connected = yield* MqttDevice.connect(device, { over: "webSocket" })
        yield* connected.post({ on: 1 }, { qos: 1 })
        assert.deepInclude((yield* connected.take).message, { code: 200 })
        const { messageId } = yield* (yield* Commands).setProperties(defaultProjectId, device.deviceId, { on: 0 })
        assert.deepInclude((yield* connected.take).message, { id: String(messageId) })
        // A packet that spans several WebSocket messages.
        yield* connected.post({ text: "x".repeat(100_000) }, { qos: 1 })
        assert.deepInclude((yield* connected.take).message, { code: 200 })
        const { device: { ip } } = yield* (yield* Devices).get(defaultProjectId, { deviceId: device.deviceId })
        assert.strictEqual(ip, "127.0.0.1")
        yield* connected.end
        yield* CloudState.untilStatus(device, "offline")
      }))

    it.effect("other upgrades of a server with MQTT over WebSocket are left to their own listener", () =>
      Effect.gen(function*() {
        const server = createServer()
        server.on("upgrade", (_, socket) => socket.end("HTTP/1.1 418 Teapot\r\n\r\n"))
        yield* MqttWebSocket.attach(server)
        yield* Effect.acquireRelease(
          Effect.callback<void>((resume) => {
            server.listen(0, "127.0.0.1", () => resume(Effect.void))
          }),
          () => Effect.sync(() => server.close())
        )
        const { port } = server.address() as AddressInfo
        const status = yield* upgradeStatus(`http://127.0.0.1:${port}/other`)
        assert.strictEqual(status, 418)
      }))

    it.effect("other upgrades of a server without a listener of its own get 404", () =>
      Effect.gen(function*() {
        const { webSocket } = yield* MqttTestServer
        assert.strictEqual(yield* upgradeStatus(webSocket.url.replace("ws:", "http:").replace("/mqtt", "/other")), 404)
      }))

    it.effect("bytes travel both ways on topics of the application, and wait for a device that is away", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const commands = yield* Commands
        const topic = `/${device.productKey}/${device.deviceName}/user/`
        const first = yield* commands.sendUserMessage(defaultProjectId, device.deviceId, {
          topic: "config/led",
          payload: JSON.stringify({ on: true }),
          encoding: "utf8"
        })
        const connected = yield* MqttDevice.connect(device)
        assert.deepStrictEqual(yield* connected.take, {
          topic: `${topic}config/led`,
          qos: 1,
          message: { on: true }
        })
        yield* CloudState.untilState(first, "succeeded")
        yield* connected.publish(`${topic}log/a`, "grüße", 1)
        yield* connected.publish(`${topic}raw`, Buffer.from([0xff, 0x00]), 1)
        yield* connected.publish(topic.slice(0, -1), "nothing", 1)
        yield* connected.publish(topic, "nothing", 1)
        assert.deepStrictEqual((yield* CloudState.events(device, "user")).map(({ value }) => value), [
          { topic: "log/a", payload: "grüße", encoding: "utf8" },
          { topic: "raw", payload: "/wA=", encoding: "base64" }
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
        const device = yield* Fixtures.createDevice()
        const connected = yield* MqttDevice.connect(device)
        const ask = connected.publish(
          connected.topic("thing/config/log/get"),
          JSON.stringify({ id: "1", params: { getType: "content", configScope: "device" } })
        )
        const mode = (value: number) => ({ getType: "content", content: { mode: value } })
        yield* ask
        assert.deepStrictEqual((yield* connected.take).message["data"], mode(0))
        yield* (yield* Devices).setDiagnosis(defaultProjectId, device.deviceId, true)
        const pushed = yield* connected.take
        assert.deepStrictEqual([pushed.topic, pushed.message["params"]], [
          connected.topic("thing/config/log/push"),
          mode(1)
        ])
        yield* ask
        assert.deepStrictEqual((yield* connected.take).message["data"], mode(1))
      }))
  })
}

layer(MqttTestServer.layer(storages[0][1]), { excludeTestServices: true })("wrong signatures over MQTT", (it) => {
  it.effect("ten in a minute shut the device and the address out", () =>
    Effect.gen(function*() {
      const [device, other] = [yield* Fixtures.createDevice(), yield* Fixtures.createDevice()]
      const early = yield* MqttDevice.connect(other)
      for (let i = 0; i < 10; i++) {
        assert.strictEqual(yield* MqttDevice.connack(device, { password: "00" }), 4)
      }
      assert.strictEqual(yield* MqttDevice.connack(device), 5)
      assert.strictEqual(yield* MqttDevice.connack(other), 5)
      // Who is connected already stays.
      yield* early.post({ on: 1 })
      assert.deepInclude((yield* early.take).message, { code: 200 })
      assert.isDefined((yield* MqttServer).mqtt)
    }))
})
