import {
  Commands,
  defaultProjectId,
  type Device,
  Devices,
  DeviceStore,
  Mac,
  parseTrustedProxies,
  type Product,
  type SignMethod,
  TrustedProxies
} from "@device-cloud/core"
import { MqttServer, MqttWebSocket } from "@device-cloud/mqtt"
import { CloudState, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Option, Queue, Result } from "effect"
import { createServer, type IncomingMessage, request } from "node:http"
import { type AddressInfo, connect } from "node:net"
import { WebSocket } from "ws"
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

/** The return code of the CONNACK for a device that connects from a loopback address. */
const connackAt = Effect.fnUntraced(function*(localAddress: string, device: Device) {
  const socket = yield* RawMqttSocket.open({ localAddress })
  yield* socket.write(RawMqttSocket.connectPacket(device))
  const packet = yield* socket.take
  return packet.cmd === "connack" ? packet.returnCode : undefined
}, Effect.scoped)

/** The response to a request for an upgrade. */
const upgrade = (url: string) =>
  Effect.callback<Pick<IncomingMessage, "statusCode" | "headers">>((resume) => {
    const asking = request(url, { headers: { connection: "Upgrade", upgrade: "websocket" } })
    asking.on("response", (response) => resume(Effect.succeed(response)))
    asking.on("error", (error) => resume(Effect.die(error)))
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

    it.effect("a device connects with its new secret and, for a time, with the one before", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const devices = yield* Devices
        const connack = (deviceSecret: string) => MqttDevice.connack({ ...device, deviceSecret }, { over: "tls" })
        const { deviceSecret: second } = yield* devices.rotateSecret(defaultProjectId, device.deviceId, {})
        assert.deepStrictEqual([yield* connack(device.deviceSecret), yield* connack(second)], [0, 0])
        const { deviceSecret: third } = yield* devices.rotateSecret(defaultProjectId, device.deviceId, { overlap: 0 })
        assert.deepStrictEqual(
          [yield* connack(device.deviceSecret), yield* connack(second), yield* connack(third)],
          [4, 4, 0]
        )
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
        assert.isAtMost(deviceToken!.length, 63)
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
        // Devices that registered earlier have the whole code as their token.
        const { deviceSecret } = Option.getOrThrow(
          yield* (yield* DeviceStore).credentials(triple.productKey, triple.deviceName)
        )
        const { sign } = yield* Mac
        const whole = sign(
          "hmacsha256",
          deviceSecret,
          `deviceTokenclientId${clientId}deviceName${triple.deviceName}productKey${triple.productKey}`
        )
        assert.isTrue(whole.startsWith(deviceToken!))
        assert.strictEqual(yield* MqttDevice.connack(triple, { ...withToken, password: whole }), 0)
        for (const wrong of [deviceToken!.slice(0, 61), whole.slice(0, 63)]) {
          assert.strictEqual(yield* MqttDevice.connack(triple, { ...withToken, password: wrong }), 4)
        }
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

    it.effect("a sub-device has no connection of its own, whatever it proves", () =>
      Effect.gen(function*() {
        const sub = yield* Fixtures.createDevice(yield* Fixtures.createProduct({ nodeType: "gateway-sub" }))
        for (const over of ["tcp", "tls", "webSocket"] as const) {
          assert.strictEqual(yield* MqttDevice.connack(sub, { over }), 5)
        }
        assert.strictEqual(yield* MqttDevice.connack(sub, { password: "00" }), 4)
        const { device } = yield* (yield* Devices).get(defaultProjectId, { deviceId: sub.deviceId })
        assert.strictEqual(device.status, "unactive")
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

    it.effect("a text message over WebSocket ends the connection, and has no effect", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const socket = new WebSocket((yield* MqttTestServer).webSocket.url, "mqtt")
        const next = (event: "open" | "message" | "close") =>
          Effect.callback<void>((resume) => {
            socket.once(event, () => resume(Effect.void))
          })
        yield* next("open")
        socket.send(RawMqttSocket.encode(RawMqttSocket.connectPacket(device)))
        yield* next("message")
        const post = RawMqttSocket.publish(MqttDevice.topicOf(device, "thing/event/property/post"), {
          payload: `{"params":{"a":1}}`
        })
        socket.send(Buffer.from(RawMqttSocket.encode(post)).toString())
        yield* next("close")
        yield* CloudState.untilStatus(device, "offline")
        assert.deepStrictEqual(yield* CloudState.reported(device), {})
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
        assert.strictEqual((yield* upgrade(`http://127.0.0.1:${port}/other`)).statusCode, 418)
      }))

    it.effect("other upgrades of a server without a listener of its own get 404, bad ones 400, with the headers of the API", () =>
      Effect.gen(function*() {
        const { webSocket } = yield* MqttTestServer
        const url = webSocket.url.replace("ws:", "http:")
        for (const [path, status] of [["/other", 404], ["/mqtt", 400]] as const) {
          const { headers, statusCode } = yield* upgrade(url.replace("/mqtt", path))
          assert.strictEqual(statusCode, status)
          assert.deepInclude(headers, {
            "x-content-type-options": "nosniff",
            "x-frame-options": "DENY",
            "referrer-policy": "no-referrer",
            "content-security-policy": "default-src 'none'; frame-ancestors 'none'"
          })
        }
      }))

    it.effect("the connection of an upgrade that is refused ends, also if the client does not end it", () =>
      Effect.gen(function*() {
        const { webSocket } = yield* MqttTestServer
        const { hostname, port } = new URL(webSocket.url)
        yield* Effect.callback<void>((resume) => {
          const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
          socket.write("GET /other HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
          // Only what is sent shows that nobody is there any more.
          const sending = setInterval(() => socket.write("x"), 10)
          socket.resume().on("error", () => {})
          socket.once("close", () => {
            clearInterval(sending)
            resume(Effect.void)
          })
        })
      }))

    it.effect("bytes travel both ways on topics of the application, and wait for a device that is away", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const commands = yield* Commands
        const topic = `/${device.productKey}/${device.deviceName}/user/`
        const { command: first } = yield* commands.sendUserMessage(defaultProjectId, device.deviceId, {
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

    it.effect("a device that subscribes to its own user topic hears what it says there, with the lower QoS", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const connected = yield* MqttDevice.connect(device)
        const topic = `/${device.productKey}/${device.deviceName}/user/`
        const say = (rest: string, qos: 0 | 1 | 2) =>
          connected.publish(`${topic}${rest}`, JSON.stringify({ rest, qos }), qos)
        yield* say("echo", 1)
        assert.deepStrictEqual(yield* connected.subscribe([`${topic}echo`, `${topic}deep/#`]), [1, 1])
        for (
          const [rest, qos, heard] of [["echo", 1, 1], ["deep/a", 0, 0], ["echo", 2, 1], ["echo?_rid=7", 1, 1]] as const
        ) {
          yield* say(rest, qos)
          assert.deepStrictEqual(yield* connected.take, {
            topic: topic + rest.split("?")[0],
            qos: heard,
            message: { rest, qos }
          })
        }
        yield* say("other", 1)
        yield* connected.request(connected.topic("thing/event/property/post"), { a: 1 })
        assert.strictEqual(yield* Queue.size(connected.received), 0)
        assert.strictEqual((yield* CloudState.events(device, "user")).length, 6)
      }))

    it.effect("a device that unsubscribes from a user topic gets no messages on it until it subscribes or comes back", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const connected = yield* MqttDevice.connect(device)
        const prefix = `/${device.productKey}/${device.deviceName}/user/`
        const send = Effect.fnUntraced(function*(topic: string) {
          const commands = yield* Commands
          const { command } = yield* commands.sendUserMessage(defaultProjectId, device.deviceId, {
            topic,
            payload: `"${topic}"`,
            encoding: "utf8"
          })
          return command
        })
        const unsubscribe = (filter: string) =>
          Effect.callback<void>((resume) => {
            connected.client.unsubscribe(filter, () => resume(Effect.void))
          })
        yield* connected.subscribe([`${prefix}led`])
        yield* unsubscribe(`${prefix}led`)
        yield* unsubscribe(`${prefix}lamps/#`)
        const stopped = [yield* send("led"), yield* send("lamps/1")]
        yield* send("other")
        assert.strictEqual((yield* connected.take).message, "other")
        yield* connected.subscribe([`${prefix}led`])
        yield* send("led")
        assert.strictEqual((yield* connected.take).message, "led")
        yield* connected.end
        const back = yield* MqttDevice.connect(device)
        for (const { params } of stopped) {
          assert.strictEqual(JSON.stringify((yield* back.take).message), params["payload"])
        }
        for (const command of stopped) yield* CloudState.untilState(command, "succeeded")
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

const behindProxy = MqttTestServer.layer(storages[0][1]).pipe(
  Layer.provide(Layer.succeed(TrustedProxies, Result.getOrThrow(parseTrustedProxies(["127.0.0.1"]))))
)

layer(behindProxy, { excludeTestServices: true })("MQTT over WebSocket behind a trusted proxy", (it) => {
  const through = (forwarded: string, proto = "https"): MqttDevice.TestConnectOptions => ({
    over: "webSocket",
    options: { wsOptions: { headers: { "X-Forwarded-For": forwarded, "X-Forwarded-Proto": proto } } }
  })

  it.effect("each client has its own address", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      for (let i = 0; i < 10; i++) {
        assert.strictEqual(yield* MqttDevice.connack(device, { ...through("198.51.100.1"), password: "00" }), 4)
      }
      assert.strictEqual(yield* MqttDevice.connack(device, through("198.51.100.1")), 5)
      yield* MqttDevice.connect(device, through("192.0.2.1, 198.51.100.2"))
      const { device: { ip } } = yield* (yield* Devices).get(defaultProjectId, { deviceId: device.deviceId })
      assert.strictEqual(ip, "198.51.100.2")
    }))

  it.effect("devices register where the way to the client is secure", () =>
    Effect.gen(function*() {
      const product = yield* Fixtures.createProduct({ dynamicRegister: true })
      const { deviceName } = yield* Fixtures.createDevice(product)
      const { options, triple } = yield* registration(product, deviceName, "register")
      assert.strictEqual(yield* MqttDevice.connack(triple, { ...through("198.51.100.3", "http"), ...options }), 5)
      assert.strictEqual(yield* MqttDevice.connack(triple, { ...through("198.51.100.3"), ...options }), 0)
    }))
})

layer(MqttTestServer.layer(storages[0][1]), { excludeTestServices: true })("wrong signatures over MQTT", (it) => {
  it.effect("ten in a minute shut the device out where they came from, fifty the address", () =>
    Effect.gen(function*() {
      const [device, other] = [yield* Fixtures.createDevice(), yield* Fixtures.createDevice()]
      const early = yield* MqttDevice.connect(yield* Fixtures.createDevice())
      for (let i = 0; i < 10; i++) {
        assert.strictEqual(yield* MqttDevice.connack(device, { password: "00" }), 4)
      }
      assert.strictEqual(yield* MqttDevice.connack(device), 5)
      assert.strictEqual(yield* connackAt("127.0.0.2", device), 0)
      assert.strictEqual(yield* MqttDevice.connack(other), 0)
      for (let i = 0; i < 40; i++) {
        assert.strictEqual(yield* MqttDevice.connack(other, { username: `guess${i}&nothing`, password: "00" }), 4)
      }
      assert.strictEqual(yield* MqttDevice.connack(other), 5)
      assert.strictEqual(yield* connackAt("127.0.0.2", other), 0)
      // Who is connected already stays.
      yield* early.post({ on: 1 })
      assert.deepInclude((yield* early.take).message, { code: 200 })
      assert.isDefined((yield* MqttServer).mqtt)
    }))
})
