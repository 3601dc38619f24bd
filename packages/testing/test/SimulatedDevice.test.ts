import { Commands, Configurations, defaultProjectId, type Device, Devices, Jobs, Shadows } from "@device-cloud/core"
import { CloudState, eventually, Fixtures, SimulatedDevice } from "@device-cloud/testing"
import { createDevice, createProduct, testApi } from "@device-cloud/testing/http"
import { MqttTestServer } from "@device-cloud/testing/mqtt"
import * as StorageMemory from "@device-cloud/storage-memory"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, type Scope } from "effect"
import { HttpServer } from "effect/http"
import { type AddressInfo, createServer, type Server } from "node:net"
import { upgradeOf } from "./Upgrade.ts"

type Connect = (
  device: Device,
  behaviour?: SimulatedDevice.Behaviour
) => ReturnType<typeof SimulatedDevice.connect> | ReturnType<typeof overMqtt>

const overMqtt = (device: Device, behaviour: SimulatedDevice.Behaviour = {}) =>
  Effect.flatMap(MqttTestServer, ({ tcp }) => SimulatedDevice.connectMqtt({ ...device, ...behaviour, url: tcp.url }))

const links: ReadonlyArray<readonly [string, Connect]> = [
  ["in the process", SimulatedDevice.connect],
  ["over MQTT", overMqtt]
]

const untilReported = (device: Device, values: SimulatedDevice.Values) =>
  eventually(CloudState.reported(device), {
    until: (reported) => Object.entries(values).every(([id, value]) => reported[id] === value)
  })

describe.each(links)("a simulated device %s", (_, connect) => {
  layer(MqttTestServer.layerMemory, { excludeTestServices: true })("of a server", (it) => {
    it.effect("reports properties, events and batches", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice(yield* Fixtures.createProductWithModel())
        const connected = yield* connect(device)
        const posted = yield* connected.postProperties({ power: 1, level: 11 })
        assert.strictEqual(posted.code, 200)
        assert.hasAllKeys(posted.data, ["level"])
        assert.strictEqual((yield* connected.postEvent("alarm", { code: 3 })).code, 200)
        assert.strictEqual((yield* connected.postEvent("unknown")).code, 6300)
        const batch = yield* connected.postBatch({
          properties: { level: [{ value: 1, time: 1000 }, { value: 2, time: 2000 }] },
          events: { alarm: [{ value: { code: 4 }, time: 1000 }] }
        })
        assert.strictEqual(batch.code, 200)
        assert.deepStrictEqual(yield* CloudState.reported(device), { power: 1, level: 2 })
        assert.deepStrictEqual(yield* CloudState.samples(device, "level"), [1, 2])
        assert.sameMembers((yield* CloudState.events(device, "alarm")).map(({ value }) => JSON.stringify(value)), [
          "{\"code\":3}",
          "{\"code\":4}"
        ])
      }))

    it.effect("sends what JSON makes of values", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice(yield* Fixtures.createProductWithModel())
        const connected = yield* connect(device)
        const values = { power: 1, level: Number.NaN, at: new Date(0) as never, since: undefined as never }
        const { code, data } = yield* connected.postProperties(values)
        assert.strictEqual(code, 200)
        assert.hasAllKeys(data, ["level", "at"])
        assert.deepStrictEqual(yield* CloudState.reported(device), { power: 1 })
      }))

    it.effect("reads and changes its shadow and its tags, and asks for the time", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const connected = yield* connect(device)
        assert.strictEqual((yield* connected.reportShadow({ power: 1, level: 2 }, 10)).code, 200)
        assert.strictEqual((yield* connected.reportShadow({ power: 0 }, 10)).code, 409)
        assert.strictEqual((yield* connected.deleteReported(["level"])).code, 200)
        const { data } = yield* connected.getShadow
        assert.deepInclude(data, { state: { reported: { power: 1 }, desired: {} } })
        assert.strictEqual((yield* connected.setTags({ room: "hall", floor: "2" })).code, 200)
        assert.strictEqual((yield* connected.deleteTags(["floor"])).code, 200)
        assert.deepStrictEqual((yield* connected.getTags()).data, [{ attrKey: "room", attrValue: "hall" }])
        assert.isBelow(Math.abs(yield* connected.syncTime), 1000)
      }))

    it.effect("sends bytes and user messages", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice(yield* Fixtures.createProduct({ dataFormat: "raw" }))
        const connected = yield* connect(device)
        assert.strictEqual((yield* connected.postBytes(Uint8Array.of(1, 255))).code, 200)
        yield* connected.sendUserMessage("button", "pressed")
        const events = yield* eventually(CloudState.events(device), { until: ({ length }) => length === 2 })
        assert.deepStrictEqual(events.map(({ eventId }) => eventId), ["raw", "user"])
      }))

    it.effect("carries out what the cloud asks of it, and answers", () =>
      Effect.gen(function*() {
        const commands = yield* Commands
        const device = yield* Fixtures.createDevice(yield* Fixtures.createProductWithModel())
        yield* connect(device, {
          on: {
            set: (values) =>
              values["level"] === 0
                ? Effect.fail(new SimulatedDevice.Refusal({ code: 100_001, reason: "stuck" }))
                : Effect.succeed({ ...values, power: 1 }),
            services: { reset: ({ hard }) => Effect.succeed({ was: hard! }) }
          }
        })
        const ask = (serviceId: string | null, params: SimulatedDevice.Values) =>
          commands.request(defaultProjectId, device.deviceId, serviceId, params, { wait: 10 })
        assert.deepInclude((yield* ask(null, { level: 4 })).command, { state: "succeeded" })
        assert.deepStrictEqual(yield* untilReported(device, { level: 4 }), { level: 4, power: 1 })
        assert.deepInclude((yield* ask(null, { level: 0 })).command, { state: "failed", code: 100_001 })
        assert.deepInclude((yield* ask("reset", { hard: 1 })).command, { state: "succeeded", data: { was: 1 } })
      }))

    it.effect("carries out commands in their order, also when they come while it is busy", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const levels: Array<unknown> = []
        yield* connect(device, { on: { set: ({ level }) => Effect.sync(() => void levels.push(level)) } })
        const sent = Array.from({ length: 12 }, (_, level) => level)
        const { setProperties } = yield* Commands
        for (const level of sent) yield* setProperties(defaultProjectId, device.deviceId, { level })
        yield* eventually(Effect.sync(() => levels.length), { until: (length) => length === sent.length })
        assert.deepStrictEqual(levels, sent)
      }))

    it.effect("takes over what is desired, also what was desired while it was away", () =>
      Effect.gen(function*() {
        const shadows = yield* Shadows
        const device = yield* Fixtures.createDevice()
        yield* shadows.desire(defaultProjectId, device.deviceId, { power: 1 })
        yield* connect(device, { on: { desired: () => Effect.void } })
        yield* untilReported(device, { power: 1 })
        yield* shadows.desire(defaultProjectId, device.deviceId, { level: 3 })
        yield* untilReported(device, { power: 1, level: 3 })
        const { shadow } = yield* eventually(shadows.get(defaultProjectId, device.deviceId), {
          until: ({ shadow }) => Object.keys(shadow.desired).length === 0
        })
        assert.deepStrictEqual(Object.keys(shadow.reported), ["power", "level"])
      }))

    it.effect("answers calls on user topics", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        yield* connect(device, {
          on: { userMessage: ({ payload, topic }) => Effect.succeed(`${topic} ${payload.length}`) }
        })
        const message = { topic: "echo/me", payload: "hello", encoding: "utf8" } as const
        const { command } = yield* Effect.flatMap(Commands, (commands) =>
          commands.sendUserMessage(defaultProjectId, device.deviceId, message, { wait: 10 }))
        assert.deepInclude(command, { state: "succeeded" })
        assert.deepInclude(command.data, { payload: "echo/me 5" })
      }))

    it.effect("ends the tasks of jobs", () =>
      Effect.gen(function*() {
        const jobs = yield* Jobs
        const [good, bad] = yield* Fixtures.createDevices(2)
        yield* connect(good!, { on: { job: (document) => Effect.succeed({ document }) } })
        yield* connect(bad!, {
          on: { job: () => Effect.fail(new SimulatedDevice.Refusal({ code: 100_000, reason: "no arms" })) }
        })
        const { jobId } = yield* jobs.create(defaultProjectId, {
          name: "Wave",
          document: { waves: 2 },
          deviceIds: [good!.deviceId, bad!.deviceId]
        })
        const { items } = yield* eventually(jobs.tasks(defaultProjectId, jobId, undefined, { page: 1, pageSize: 2 }), {
          until: ({ items }) => items.every(({ state }) => state === "succeeded" || state === "failed")
        })
        assert.deepStrictEqual(
          new Map(items.map(({ details, deviceId }) => [deviceId, details])),
          new Map<string, unknown>([
            [good!.deviceId, { document: { waves: 2 } }],
            [bad!.deviceId, { reason: "no arms" }]
          ])
        )
      }))

    it.effect("downloads firmware in blocks, installs it and reports its version", () =>
      Effect.gen(function*() {
        const { image, outcome, device } = yield* upgradeOf({ downloadProtocol: "mqtt" })
        const installed: Array<number> = []
        const connected = yield* connect(device, {
          on: { upgrade: ({ bytes }) => Effect.sync(() => void installed.push(Buffer.compare(bytes, image))) }
        })
        yield* connected.inform("1.0.0")
        assert.strictEqual(yield* outcome, "succeeded")
        assert.deepStrictEqual(installed, [0])
      }))

    it.effect("reports an upgrade that cannot be installed as failed", () =>
      Effect.gen(function*() {
        const { outcome, device } = yield* upgradeOf({ downloadProtocol: "mqtt" })
        const connected = yield* connect(device, {
          on: { upgrade: () => Effect.fail(new SimulatedDevice.Refusal({ code: 100_000, reason: "no room" })) }
        })
        yield* connected.inform("1.0.0")
        assert.strictEqual(yield* outcome, "failed")
      }))

    it.effect("hears that its connection ends, and why a command came to nothing", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const first = yield* connect(device)
        const waiting = yield* Effect.forkChild(first.closed)
        yield* connect(device)
        assert.oneOf(yield* Fiber.join(waiting), ["replaced", "lost"])
        const sent = yield* Effect.flip(first.postProperties({ power: 1 }))
        assert.strictEqual(sent._tag, "LinkError")
      }))
  })
})

layer(MqttTestServer.layerMemory, { excludeTestServices: true })("a simulated device", (it) => {
  it.effect("downloads firmware and configurations from the objects of its cloud", () =>
    Effect.gen(function*() {
      const { device, image, outcome } = yield* upgradeOf({ downloadProtocol: "https" })
      const read: Array<string> = []
      const connected = yield* SimulatedDevice.connect(device, {
        on: {
          upgrade: ({ bytes }) => Effect.sync(() => assert.strictEqual(Buffer.compare(bytes, image), 0)),
          configuration: (content) => Effect.sync(() => void read.push(Buffer.from(content).toString()))
        }
      })
      yield* connected.inform("1.0.0")
      assert.strictEqual(yield* outcome, "succeeded")
      const configurations = yield* Configurations
      const addressOf = ({ fileName, objectId }: { readonly objectId: string; readonly fileName: string }) =>
        Effect.succeed(`https://cloud.example.com/objects/${objectId}/${fileName}`)
      assert.strictEqual((yield* Effect.flip(connected.getConfiguration)).message.slice(0, 4), "6713")
      yield* configurations.put(
        defaultProjectId,
        { deviceId: device.deviceId },
        { format: "text", content: "rate=5" },
        addressOf
      )
      yield* configurations.push(defaultProjectId, { deviceId: device.deviceId })
      yield* eventually(Effect.sync(() => read.length), { until: (count) => count === 1 })
      assert.deepStrictEqual(read, ["rate=5"])
      assert.strictEqual(Buffer.from(yield* connected.getConfiguration).toString(), "rate=5")
    }))

  it.effect("registers over TLS with the secret of its product", () =>
    Effect.gen(function*() {
      const product = yield* Fixtures.createProduct({ dynamicRegister: true })
      const { deviceName, deviceSecret } = yield* Fixtures.createDevice(product)
      const { ca, url } = (yield* MqttTestServer).tls
      const { productKey, productSecret } = product
      const triple = yield* SimulatedDevice.register({ url, ca: ca!, productKey, productSecret, deviceName })
      assert.deepStrictEqual(triple, { productKey, deviceName, deviceSecret })
      const connected = yield* SimulatedDevice.connectMqtt({ url, ca: ca!, ...triple })
      assert.strictEqual((yield* connected.postProperties({ power: 1 })).code, 200)
      const again = yield* Effect.flip(
        SimulatedDevice.register({ url, ca: ca!, productKey, productSecret, deviceName })
      )
      assert.strictEqual(again.returnCode, 5)
    }))

  it.effect("is half open once it is cut: the cloud finds out by the keep-alive, and delivers again", () =>
    Effect.gen(function*() {
      const commands = yield* Commands
      const device = yield* Fixtures.createDevice()
      const { url } = (yield* MqttTestServer).tcp
      const times = { keepAlive: "1 second", replyTimeout: "100 millis" } as const
      const connected = yield* SimulatedDevice.connectMqtt({ ...device, ...times, url })
      yield* connected.cut
      assert.strictEqual((yield* Effect.flip(connected.postProperties({ power: 1 })))._tag, "LinkError")
      const { messageId } = yield* commands.setProperties(defaultProjectId, device.deviceId, { level: 5 })
      const command = commands.get(defaultProjectId, device.deviceId, messageId)
      assert.strictEqual((yield* eventually(command, { until: ({ deliveries }) => deliveries === 1 })).state, "sent")
      yield* eventually(CloudState.device(device), { until: ({ status }) => status === "offline" })
      yield* SimulatedDevice.connectMqtt({ ...device, url, on: { set: () => Effect.void } })
      assert.deepStrictEqual(yield* untilReported(device, { level: 5 }), { level: 5 })
      assert.strictEqual((yield* command).deliveries, 2)
    }))

  it.effect("is refused with a wrong secret", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const { url } = (yield* MqttTestServer).tcp
      const refused = yield* Effect.flip(SimulatedDevice.connectMqtt({ ...device, url, deviceSecret: "other" }))
      assert.strictEqual(refused.returnCode, 4)
    }))
})

layer(testApi(StorageMemory.layer), { excludeTestServices: true })("a simulated device over HTTP", (it) => {
  it.effect("reports, reads its shadow, and carries out commands that come with replies", () =>
    Effect.gen(function*() {
      const { device_id, ...triple } = yield* createDevice((yield* createProduct()).product_key)
      const { address } = yield* HttpServer.HttpServer
      const connected = yield* SimulatedDevice.connectHttp({
        url: HttpServer.formatAddress(address),
        productKey: triple["product_key"]!,
        deviceName: triple["device_name"]!,
        deviceSecret: triple["device_secret"]!,
        on: { set: () => Effect.void }
      })
      assert.strictEqual((yield* connected.postProperties({ power: 1 })).code, 200)
      assert.strictEqual((yield* connected.postEvent("alarm", { code: 1 })).code, 200)
      assert.strictEqual((yield* connected.setTags({ room: "hall" })).code, 200)
      assert.isBelow(Math.abs(yield* connected.syncTime), 1000)
      yield* connected.inform("1.0.0")
      assert.strictEqual((yield* connected.postBatch({})).code, 6203)
      const commands = yield* Commands
      yield* commands.setProperties(defaultProjectId, device_id as Device["deviceId"], { level: 5 })
      yield* connected.postBytes(Uint8Array.of(1))
      const reported = { projectId: defaultProjectId, deviceId: device_id as Device["deviceId"] }
      yield* untilReported(reported as Device, { power: 1, level: 5 })
      const { data } = yield* connected.getShadow
      assert.deepInclude(data, { state: { reported: { power: 1, level: 5 }, desired: {} } })
    }))

  it.effect("keeps its clock when the cloud does not tell it the time", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const url = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
      const connected = yield* SimulatedDevice.connectHttp({ ...device, url: `${url}/` })
      yield* (yield* Devices).disable(defaultProjectId, device.deviceId)
      assert.deepInclude(yield* Effect.flip(connected.syncTime), { _tag: "Refusal", code: 40301 })
      assert.isTrue(Number.isFinite(yield* connected.now))
    }))
})

const bothServers = MqttTestServer.layerBroker().pipe(Layer.provideMerge(testApi(StorageMemory.layer)))

layer(bothServers, { excludeTestServices: true })("a simulated device that knows the secret of its product", (it) => {
  it.effect("registers over HTTP with a form, and connects over WebSocket", () =>
    Effect.gen(function*() {
      const product = yield* Fixtures.createProduct({ dynamicRegister: true })
      const { productKey, productSecret } = product
      const { deviceName, deviceSecret } = yield* Fixtures.createDevice(product)
      const url = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
      const names = { url: `${url}/`, productKey, deviceName }
      const refused = yield* Effect.flip(SimulatedDevice.register({ ...names, productSecret: "other" }))
      assert.include(refused.reason, "6600")
      const triple = yield* SimulatedDevice.register({ ...names, productSecret })
      assert.deepStrictEqual(triple, { productKey, deviceName, deviceSecret })
      const connected = yield* SimulatedDevice.connectMqtt({ ...triple, ...(yield* MqttTestServer).webSocket })
      assert.strictEqual((yield* connected.postProperties({ power: 1 })).code, 200)
    }))
})

describe("a simulated device that is given something wrong", () => {
  const triple = { productKey: "a1B2c3D4e5F", deviceName: "thermostat01", deviceSecret: "0123456789abcdef" }
  const refusalOf = (attempt: Effect.Effect<unknown, unknown, Scope.Scope>) =>
    Effect.map(Effect.flip(Effect.catchDefect(Effect.scoped(attempt), Effect.fail)), String)

  it.effect.each(["localhost:1883", "http://127.0.0.1:1"])(
    "connects over MQTT to no address like %s",
    (url) =>
      Effect.gen(function*() {
        const expected = `TypeError: url: expected an address such as mqtts://cloud.example.com, not ${url}`
        assert.strictEqual(yield* refusalOf(SimulatedDevice.connectMqtt({ ...triple, url })), expected)
      })
  )

  it.effect.each(["localhost:8080", "mqtt://127.0.0.1:1"])(
    "sends over HTTP to no address like %s",
    (url) =>
      Effect.gen(function*() {
        const expected = `TypeError: url: expected an address such as https://cloud.example.com, not ${url}`
        assert.strictEqual(yield* refusalOf(SimulatedDevice.connectHttp({ ...triple, url })), expected)
      })
  )

  it.effect("names the address that it cannot register at, and the member that it lacks", () =>
    Effect.gen(function*() {
      assert.strictEqual(
        yield* refusalOf(SimulatedDevice.register({ ...triple, productSecret: "abc", url: "localhost:8883" })),
        "TypeError: url: expected an address such as mqtts://cloud.example.com, not localhost:8883"
      )
      const lacking = { ...triple, deviceSecret: undefined! }
      assert.strictEqual(
        yield* refusalOf(SimulatedDevice.connectMqtt({ ...lacking, url: "mqtt://127.0.0.1:1" })),
        "TypeError: deviceSecret: expected that of the device, not undefined"
      )
    }))

  it.live("does not wait for the secret of a server that ends the connection", () =>
    Effect.gen(function*() {
      const server = yield* Effect.acquireRelease(
        Effect.callback<Server>((resume) => {
          // CONNACK with code 0, and nothing after it.
          const accepting = createServer((socket) =>
            void socket.once("data", () => socket.end(Uint8Array.of(0x20, 2, 0, 0)))
          )
          accepting.listen(0, "127.0.0.1", () => resume(Effect.succeed(accepting)))
        }),
        (accepting) => Effect.sync(() => accepting.close())
      )
      const url = `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`
      const refused = yield* Effect.flip(SimulatedDevice.register({ ...triple, productSecret: "abc", url }))
      assert.strictEqual(refused.reason, "The connection has ended before the secret came")
    }))
})
