import {
  Commands,
  type Device,
  Devices,
  Mac,
  Shadows,
  type SignMethod,
  type TraceEntry,
  TraceRecorder,
  Traces
} from "@device-cloud/core"
import { EmbeddedPostgres } from "@device-cloud/postgres-embedded"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, Fixtures, TestKeyRing } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, it, layer } from "@effect/vitest"
import { Clock, Effect, Layer, Redacted } from "effect"
import { inject } from "vitest"
import { everyStorage } from "../../../vitest.storages.ts"

const createDevice = Effect.flatMap(
  Fixtures.createProductWithModel(Fixtures.thingModel, { validateType: "weak" }),
  Fixtures.createDevice
)

const trace = ({ deviceId, projectId }: Device, minutes = 10) =>
  Effect.asVoid(Effect.flatMap(Traces, ({ start }) => start(projectId, deviceId, minutes)))

const entriesOf = ({ deviceId, projectId }: Device, after = 0) =>
  Effect.map(
    Effect.flatMap(Traces, ({ read }) => read(projectId, deviceId, { after, limit: 200 })),
    ({ entries }) => entries.map(({ entry }) => entry)
  )

/** The entries of a device once there are so many. */
const whenThere = (device: Device, count: number) =>
  eventually(entriesOf(device), { until: ({ length }) => length >= count })

const kinds = (entries: ReadonlyArray<TraceEntry>) => entries.map(({ kind }) => kind)

for (const [name, storage] of everyStorage) {
  layer(MqttTestServer.layer(storage), { excludeTestServices: true })(`traces over MQTT on ${name}`, (it) => {
    it.effect("shows what a device says, what the cloud answers, and why a value was refused", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const { post, say, takeFrom, topic, end, publish } = yield* MqttDevice.connect(device)
        const reply = takeFrom(topic("thing/event/property/post_reply"))
        yield* post({ level: 1 })
        yield* reply
        yield* trace(device)
        assert.deepStrictEqual(yield* entriesOf(device), [])
        yield* post({ level: 2 })
        yield* reply
        yield* post({ level: "hot" }, { qos: 1 })
        const refused = yield* reply
        yield* publish(topic("thing/event/property/post"), "{no json")
        yield* reply
        yield* say("thing/event/property/post", { id: "9", params: { level: 3 }, sys: { ack: 0 } })
        yield* publish("/somewhere/else", "{}", 1)
        yield* end
        const entries = yield* whenThere(device, 6)
        assert.deepStrictEqual(kinds(entries), [...Array.from({ length: 5 }, () => "uplink"), "disconnected"])
        const [accepted, misfit, broken, silent, foreign, left] = entries
        assert.deepInclude(accepted, { transport: "mqtt", topic: topic("thing/event/property/post") })
        assert.strictEqual(JSON.parse(accepted!.payload!.text).params.level, 2)
        assert.deepInclude(accepted!.reply, { code: 200, message: "success", issues: [] })
        assert.deepInclude(misfit!.reply, { code: refused.code, message: refused.message })
        assert.deepStrictEqual(misfit!.reply!.issues, [{ path: ["params", "level"], message: refused.data.level }])
        assert.deepInclude(broken!.payload, { text: "{no json", encoding: "utf8", bytes: 8, cut: false })
        assert.strictEqual(broken!.reply!.code, 6207)
        assert.strictEqual(silent!.reply!.code, 200)
        assert.deepInclude(foreign, { topic: "/somewhere/else" })
        assert.strictEqual(foreign!.reply!.code, 403)
        assert.strictEqual(left!.reason, "the device has sent DISCONNECT")
      }))

    it.effect("shows what the cloud sends, who connects, and who is refused", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        yield* trace(device)
        assert.strictEqual(yield* MqttDevice.connack({ ...device, deviceSecret: "wrong" }), 4)
        const { takeFrom, topic } = yield* MqttDevice.connect(device, { over: "webSocket" })
        const { deviceId, projectId } = device
        yield* (yield* Commands).setProperties(projectId, deviceId, { level: 5 })
        yield* takeFrom(topic("thing/service/property/set"))
        yield* (yield* Devices).disable(projectId, deviceId)
        const entries = yield* whenThere(device, 5)
        assert.deepStrictEqual(kinds(entries), ["refused", "connected", "downlink", "downlink", "disconnected"])
        const [refused, connected, set, disabled, left] = entries
        assert.deepInclude(refused, { transport: "mqtt", reason: "wrong signature", address: "127.0.0.1" })
        assert.deepInclude(connected, { transport: "websocket", address: "127.0.0.1" })
        assert.deepInclude(set, { topic: topic("thing/service/property/set") })
        assert.strictEqual(JSON.parse(set!.payload!.text).params.level, 5)
        assert.deepInclude(disabled, { topic: topic("thing/disable") })
        assert.strictEqual(left!.reason, "the device was disabled")
      }))

    it.effect("a sub-device has a trace of its own, also of what its gateway packs, and no signature is in one", () =>
      Effect.gen(function*() {
        const of = (nodeType: "gateway" | "gateway-sub") =>
          Effect.flatMap(Fixtures.createProduct({ nodeType, validateType: "none" }), Fixtures.createDevice)
        const [gateway, subDevice] = [yield* of("gateway"), yield* of("gateway-sub")]
        yield* trace(gateway)
        yield* trace(subDevice)
        const { deviceName, productKey } = subDevice
        const connected = yield* MqttDevice.connect(gateway)
        const timestamp = yield* Clock.currentTimeMillis
        const signMethod: SignMethod = "hmacsha1"
        const clientId = `${productKey}&${deviceName}`
        const proof = {
          productKey,
          deviceName,
          clientId,
          timestamp,
          signMethod,
          sign: (yield* Mac).sign(
            signMethod,
            subDevice.deviceSecret,
            `clientId${clientId}deviceName${deviceName}productKey${productKey}timestamp${timestamp}`
          )
        }
        const login = `/ext/session/${gateway.productKey}/${gateway.deviceName}/combine/login`
        assert.notStrictEqual((yield* connected.request(login, proof)).code, 200)
        assert.strictEqual((yield* connected.request(connected.topic("thing/topo/add"), [proof])).code, 200)
        assert.strictEqual((yield* connected.request(login, proof)).code, 200)
        yield* connected.request(MqttDevice.topicOf(subDevice, "thing/event/property/post"), { power: 1 })
        yield* connected.request(connected.topic("thing/event/property/pack/post"), {
          subDevices: [{ identity: { productKey, deviceName }, properties: { power: { value: 2 } } }]
        })
        yield* connected.end
        const ofSubDevice = yield* whenThere(subDevice, 5)
        assert.deepStrictEqual(kinds(ofSubDevice), ["refused", "connected", "uplink", "uplink", "disconnected"])
        for (const { gateway: through } of ofSubDevice) {
          assert.deepStrictEqual(through, { productKey: gateway.productKey, deviceName: gateway.deviceName })
        }
        assert.strictEqual(ofSubDevice[0]!.reason, "topo relation not exist")
        assert.strictEqual(ofSubDevice[4]!.reason, "the connection of its gateway has ended")
        const ofGateway = yield* whenThere(gateway, 6)
        assert.notInclude(JSON.stringify([ofSubDevice, ofGateway]), proof.sign)
        assert.include(JSON.stringify(ofGateway), "\\\"sign\\\":\\\"***\\\"")
      }))

    it.effect("a flood is traced as far as there is room, and takes nothing from the device", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const { deviceId, projectId } = device
        yield* trace(device)
        const { note } = yield* TraceRecorder
        for (let i = 0; i < 5000; i++) note(deviceId, { kind: "uplink", transport: "mqtt", topic: String(i) })
        const { post, takeFrom, topic } = yield* MqttDevice.connect(device)
        yield* post({ level: 2 })
        assert.strictEqual((yield* takeFrom(topic("thing/event/property/post_reply"))).code, 200)
        const { dropped, entries } = yield* eventually(
          Effect.flatMap(Traces, ({ read }) => read(projectId, deviceId, { limit: 1000 })),
          { until: ({ dropped }) => dropped > 0 }
        )
        assert.isAtLeast(dropped, 3000)
        assert.lengthOf(entries, 1000)
        assert.deepInclude((yield* (yield* Shadows).get(projectId, deviceId)).shadow.reported["level"], {
          value: 2
        })
      }))

    it.effect("ends when it is stopped", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        yield* trace(device)
        const { post, takeFrom, topic } = yield* MqttDevice.connect(device)
        yield* whenThere(device, 1)
        yield* (yield* Traces).stop(device.projectId, device.deviceId)
        yield* post({ level: 2 })
        yield* takeFrom(topic("thing/event/property/post_reply"))
        assert.isFalse((yield* TraceRecorder).isTraced(device.deviceId))
        assert.deepStrictEqual(kinds(yield* entriesOf(device)), ["connected"])
      }))
  })
}

it.live("traces a device on whichever node it is, and shows it on each", () =>
  Effect.gen(function*() {
    const url = yield* EmbeddedPostgres.createDatabase(Redacted.make(inject("postgresUrl")))
    const node = Layer.build(
      Layer.fresh(MqttTestServer.layer(StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer))))
    )
    const [one, other] = [yield* node, yield* node]
    const device = yield* Effect.provide(createDevice, one)
    const { post, takeFrom, topic } = yield* Effect.provide(MqttDevice.connect(device), other)
    yield* Effect.provide(trace(device), one)
    const { isTraced } = yield* Effect.provide(TraceRecorder, other)
    yield* eventually(Effect.sync(() => isTraced(device.deviceId)), { until: (is) => is })
    yield* post({ level: 2 })
    yield* takeFrom(topic("thing/event/property/post_reply"))
    const moved = yield* Effect.provide(MqttDevice.connect(device), one)
    yield* moved.post({ level: 3 })
    yield* moved.takeFrom(topic("thing/event/property/post_reply"))
    for (const on of [one, other]) {
      const entries = yield* Effect.provide(whenThere(device, 4), on)
      assert.sameMembers(kinds(entries), ["uplink", "disconnected", "connected", "uplink"])
      assert.lengthOf(new Set(entries.map(({ nodeId }) => nodeId)), 2)
      assert.strictEqual(
        entries.find(({ kind }) => kind === "disconnected")!.reason,
        "another connection of the device took its place"
      )
    }
  }).pipe(Effect.scoped), 60_000)
