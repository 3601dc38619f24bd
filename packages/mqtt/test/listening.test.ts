import { Commands, defaultProjectId, type Device, Shadows } from "@device-cloud/core"
import type { ListeningTimes } from "@device-cloud/mqtt"
import * as StorageMemory from "@device-cloud/storage-memory"
import { CloudState, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ping, subscribe } from "./RawPackets.ts"

const { post, publish } = RawMqttSocket
const { topicOf } = MqttDevice

const set = ({ deviceId }: Pick<Device, "deviceId">, params: Readonly<Record<string, number>>) =>
  Effect.flatMap(Commands, (commands) => commands.setProperties(defaultProjectId, deviceId, params))

const call = ({ deviceId }: Device) =>
  Effect.flatMap(Commands, (commands) => commands.callService(defaultProjectId, deviceId, "ring", {}))

const desire = ({ deviceId }: Device, desired: Readonly<Record<string, number>>) =>
  Effect.flatMap(Shadows, (shadows) => shadows.desire(defaultProjectId, deviceId, desired))

const shadowTopic = ({ deviceName, productKey }: Device) => `/shadow/get/${productKey}/${deviceName}`
const updateTopic = ({ deviceName, productKey }: Device) => `/shadow/update/${productKey}/${deviceName}`

const server = (times: Partial<ListeningTimes>) =>
  MqttTestServer.layer(StorageMemory.layer, {}, { quiet: "1 hour", longest: "1 hour", shadow: "1 hour", ...times })

const readShadow = (device: Device) =>
  publish(updateTopic(device), { payload: JSON.stringify({ method: "get" }), qos: 1, messageId: 40 })

layer(server({ quiet: "300 millis" }), { excludeTestServices: true })("devices whose software starts slowly", (it) => {
  for (
    const [name, first] of [
      ["subscribes", (device: Device) => subscribe(1, [topicOf(device, "thing/service/#"), 1])],
      ["publishes", (device: Device) => post(device, { on: 1 }, { qos: 1, messageId: 1 })]
    ] as const
  ) {
    it.effect(`what waits leaves when the device ${name} and is quiet then`, () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const waiting = yield* call(device)
        const wire = yield* RawMqttSocket.connect(device)
        const later = yield* call(device)
        yield* CloudState.untilStatus(device, "online")
        yield* wire.write(ping)
        assert.deepInclude(yield* wire.take, { cmd: "pingresp" })
        assert.strictEqual((yield* CloudState.untilState(waiting, "queued")).deliveries, 0)
        yield* wire.write(first(device))
        const packets = yield* wire.takeN(3)
        assert.deepStrictEqual(
          packets.flatMap((each) => each.cmd === "publish" ? [RawMqttSocket.payloadOf(each)["id"]] : []).slice(-2),
          [waiting, later].map(({ messageId }) => String(messageId))
        )
        assert.strictEqual((yield* CloudState.untilState(later, "sent")).deliveries, 1)
        // From now on, commands leave at once.
        const last = yield* call(device)
        assert.deepInclude(RawMqttSocket.payloadOf(yield* wire.take), { id: String(last.messageId) })
      }))
  }
})

layer(server({ longest: "300 millis" }), { excludeTestServices: true })("devices that say nothing", (it) => {
  it.effect("what waits leaves after the longest time", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const waiting = yield* call(device)
      const wire = yield* RawMqttSocket.connect(device)
      assert.deepInclude(RawMqttSocket.payloadOf(yield* wire.take), { id: String(waiting.messageId) })
    }))
})

layer(server({}), { excludeTestServices: true })("devices that are not ready for an hour", (it) => {
  it.effect("a resumed session gets at once what waits, and what is desired if it has subscribed to its shadow", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const first = yield* RawMqttSocket.connect(device, { clean: false })
      yield* first.write(subscribe(1, [shadowTopic(device), 1]), { cmd: "disconnect" })
      yield* CloudState.untilStatus(device, "offline")
      const waiting = yield* set(device, { level: 4 })
      const back = yield* RawMqttSocket.connect(device, { clean: false })
      const payloads = (yield* back.takeN(2)).map(RawMqttSocket.payloadOf)
      assert.deepInclude(payloads.find(({ method }) => method === "control")?.payload.state, { desired: { level: 4 } })
      assert.deepInclude(payloads.find(({ id }) => id === String(waiting.messageId)), { params: { level: 4 } })
    }))

  it.effect.each(["disconnect", "cut"] as const)(
    "what waited for a device that leaves (%s) was not delivered",
    (end) =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const waiting = yield* call(device)
        const wire = yield* RawMqttSocket.connect(device)
        yield* CloudState.untilStatus(device, "online")
        const later = yield* call(device)
        if (end === "disconnect") yield* wire.write({ cmd: "disconnect" })
        else wire.socket.destroy()
        yield* CloudState.untilStatus(device, "offline")
        for (const command of [waiting, later]) {
          assert.strictEqual((yield* CloudState.untilState(command, "queued")).deliveries, 0)
        }
      })
  )

  it.effect("a device hears what is desired after it has read its shadow, and only the newest of it", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      yield* desire(device, { level: 1 })
      const wire = yield* RawMqttSocket.connect(device)
      yield* wire.write(subscribe(1, [shadowTopic(device), 1]), post(device, { on: 1 }, { qos: 1, messageId: 2 }))
      yield* wire.takeN(2)
      yield* desire(device, { level: 2 })
      yield* desire(device, { level: 3 })
      yield* wire.write(ping)
      assert.deepInclude(yield* wire.take, { cmd: "pingresp" })
      yield* wire.write(readShadow(device))
      const heard = (yield* wire.takeN(3)).flatMap((each) =>
        each.cmd === "publish" ? [RawMqttSocket.payloadOf(each)] : []
      )
      assert.deepStrictEqual(heard.map(({ method }) => method), ["reply", "control"])
      assert.deepInclude(heard[1].payload.state, { desired: { level: 3 } })
      // From now on, changes are told at once.
      yield* desire(device, { level: 4 })
      assert.deepInclude(RawMqttSocket.payloadOf(yield* wire.take).payload.state, { desired: { level: 4 } })
    }))
})

layer(server({ shadow: "200 millis" }), { excludeTestServices: true })(
  "devices that subscribe to their shadow",
  (it) => {
    it.effect("hear what is desired some time after it, also what was desired before", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        yield* desire(device, { level: 1 })
        const connected = yield* MqttDevice.connect(device)
        yield* connected.subscribe([shadowTopic(device)])
        const control = yield* connected.takeFrom(shadowTopic(device))
        assert.deepInclude(control.payload.state, { desired: { level: 1 } })
      }))
  }
)
