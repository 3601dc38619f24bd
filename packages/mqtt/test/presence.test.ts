import {
  type Device,
  Devices,
  type DomainEvent,
  Feed,
  feedStart,
  Mac,
  PresenceHistory,
  presenceKinds,
  SubDeviceSessions
} from "@device-cloud/core"
import { CloudState, eventually, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { everyStorage } from "../../../vitest.storages.ts"

const { connectPacket, post } = RawMqttSocket

/** What the history of a device says, the oldest first. It is what the feed has told, in the same order. */
const presenceOf = Effect.fnUntraced(function*({ deviceId, projectId }: Device) {
  const { entries } = yield* (yield* PresenceHistory).read(projectId, deviceId, { limit: 100 })
  const select = { deviceIds: [deviceId], kinds: presenceKinds }
  const feed = yield* eventually(
    (yield* Feed).read({ projectId, after: feedStart, limit: 1000, select }),
    { until: (page) => page.entries.length === entries.length }
  )
  assert.deepStrictEqual(entries.toReversed(), feed.entries)
  return entries.toReversed().map(({ event }) => event)
})

const said = (event: DomainEvent) => {
  if (event._tag === "ConnectionReplaced") return `takeover over ${event.link.transport}`
  assert(event._tag === "DeviceStatusChanged")
  const { link, reason, status, version } = event
  return `${status} ${version} over ${link?.transport}${reason === undefined ? "" : `: ${reason}`}`
}

const whenOffline = (device: Device) =>
  eventually(CloudState.device(device), { until: ({ status }) => status === "offline" })

const proofOf = Effect.fnUntraced(function*({ deviceName, deviceSecret, productKey }: Device) {
  const timestamp = yield* Clock.currentTimeMillis
  const clientId = `${productKey}&${deviceName}`
  const text = `clientId${clientId}deviceName${deviceName}productKey${productKey}timestamp${timestamp}`
  const sign = (yield* Mac).sign("hmacsha1", deviceSecret, text)
  return { productKey, deviceName, clientId, timestamp, signMethod: "hmacsha1", sign }
})

for (const [name, storage] of everyStorage) {
  layer(MqttTestServer.layer(storage), { excludeTestServices: true })(`presence over MQTT on ${name}`, (it) => {
    it.effect("tells through what a device was online, what took its place, and why it ended", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        assert.deepStrictEqual(yield* presenceOf(device), [])
        const first = yield* MqttDevice.connect(device)
        yield* first.end
        yield* whenOffline(device)
        yield* MqttDevice.connect(device, { over: "webSocket" })
        yield* MqttDevice.connect(device)
        yield* (yield* Devices).disable(device.projectId, device.deviceId)
        yield* whenOffline(device)
        const events = yield* presenceOf(device)
        assert.deepStrictEqual(events.map(said), [
          "online 1 over mqtt",
          "offline 2 over mqtt: the device has sent DISCONNECT",
          "online 3 over websocket",
          "takeover over mqtt",
          "offline 4 over mqtt: the device was disabled"
        ])
        for (const { link } of events) assert.strictEqual(link?.address, "127.0.0.1")
        assert.lengthOf(new Set(events.map(({ link }) => link?.nodeId)), 1)
      }))

    it.effect("tells that a device has sent DISCONNECT, also in one piece with its CONNECT", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const wire = yield* RawMqttSocket.open()
        yield* wire.write(
          connectPacket(device),
          post(device, { n: 1 }),
          { cmd: "disconnect" },
          post(device, { n: 2 })
        )
        const answers = yield* wire.rest
        assert.deepStrictEqual(answers.map(({ cmd }) => cmd), ["connack"])
        yield* whenOffline(device)
        assert.deepStrictEqual((yield* presenceOf(device)).map(said), [
          "online 1 over mqtt",
          "offline 2 over mqtt: the device has sent DISCONNECT"
        ])
        assert.deepStrictEqual(yield* CloudState.reported(device), { n: 1 })
      }))

    it.effect("tells of a sub-device what its gateway does with it", () =>
      Effect.gen(function*() {
        const of = (nodeType: "gateway" | "gateway-sub") =>
          Effect.flatMap(Fixtures.createProduct({ nodeType, validateType: "none" }), Fixtures.createDevice)
        const [gateway, subDevice] = [yield* of("gateway"), yield* of("gateway-sub")]
        const { deviceName, productKey } = gateway
        const { end, request, topic } = yield* MqttDevice.connect(gateway)
        const combine = (what: string, params: unknown) =>
          Effect.map(
            request(`/ext/session/${productKey}/${deviceName}/combine/${what}`, params),
            ({ code }) => assert.strictEqual(code, 200)
          )
        yield* request(topic("thing/topo/add"), [yield* proofOf(subDevice)])
        yield* combine("login", yield* proofOf(subDevice))
        yield* combine("logout", { productKey: subDevice.productKey, deviceName: subDevice.deviceName })
        yield* combine("login", yield* proofOf(subDevice))
        yield* end
        yield* whenOffline(subDevice)
        // As over HTTP.
        const { answer } = yield* SubDeviceSessions
        const identity = { ...gateway, validateType: "none" } as const
        yield* answer(identity, undefined, "192.0.2.1", "combine.login", yield* proofOf(subDevice))
        yield* answer(identity, undefined, "192.0.2.1", "combine.logout", {
          productKey: subDevice.productKey,
          deviceName: subDevice.deviceName
        })
        const events = yield* presenceOf(subDevice)
        assert.deepStrictEqual(events.map(said), [
          "online 1 over mqtt",
          "offline 2 over mqtt: its gateway has logged it out",
          "online 3 over mqtt",
          "offline 4 over mqtt: the connection of its gateway has ended",
          "online 5 over gateway",
          "offline 6 over undefined: its gateway has logged it out"
        ])
        for (const { link } of events.slice(0, 5)) assert.deepStrictEqual(link?.gateway, { productKey, deviceName })
      }))
  })
}
