import { CloudState, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"
import { connectNew, cut, ping, setProperty, subscribe, unsubscribe } from "./RawPackets.ts"

const { connectPacket, payloadOf, post, publish } = RawMqttSocket
const { credentials, topicOf } = MqttDevice

for (const [name, storage] of storages) {
  layer(MqttTestServer.layer(storage), { excludeTestServices: true })(
    `messages and sessions of MQTT 3.1.1 on ${name}`,
    (it) => {
      it.effect("QoS 0 is not acknowledged, QoS 1 by PUBACK, QoS 2 by PUBREC and PUBCOMP", () =>
        Effect.gen(function*() {
          const { device, wire } = yield* connectNew
          yield* wire.write(post(device, { zero: 0 }, { qos: 0 }), ping)
          assert.deepInclude(yield* wire.take, { cmd: "pingresp" })
          yield* wire.write(post(device, { one: 1 }, { qos: 1, messageId: 11 }))
          assert.deepInclude(yield* wire.take, { cmd: "puback", messageId: 11 })
          yield* wire.write(post(device, { two: 2 }, { qos: 2, messageId: 65_535 }))
          assert.deepInclude(yield* wire.take, { cmd: "pubrec", messageId: 65_535 })
          yield* wire.write({ cmd: "pubrel", messageId: 65_535 })
          assert.deepInclude(yield* wire.take, { cmd: "pubcomp", messageId: 65_535 })
          assert.deepStrictEqual(yield* CloudState.reported(device), { zero: 0, one: 1, two: 2 })
        }))

      it.effect("messages of QoS 1 are acknowledged in their order, and replied to in their order", () =>
        Effect.gen(function*() {
          const { device, wire } = yield* connectNew
          const ids = Array.from({ length: 200 }, (_, i) => i + 1)
          yield* wire.write(...ids.map((id) => post(device, { n: id }, { qos: 1, messageId: id, id: String(id) })))
          const packets = yield* wire.takeN(2 * ids.length)
          assert.deepStrictEqual(packets.flatMap((each) => each.cmd === "puback" ? [each.messageId] : []), ids)
          assert.deepStrictEqual(
            packets.flatMap((each) => each.cmd === "publish" ? [payloadOf(each)["id"]] : []),
            ids.map(String)
          )
        }))

      it.effect("a subscription lowers the QoS of what is delivered, until it is taken back", () =>
        Effect.gen(function*() {
          const { device, wire } = yield* connectNew
          const own = topicOf(device, "thing/service/#")
          const nextQos = Effect.andThen(
            setProperty(device, { a: 1 }),
            Effect.map(wire.take, (each) => each.cmd === "publish" ? each.qos : each.cmd)
          )
          assert.strictEqual(yield* nextQos, 1)
          for (const [packets, qos] of [[[subscribe(1, [own, 0])], 0], [[unsubscribe(2, own)], 1]] as const) {
            yield* wire.write(...packets)
            yield* wire.take
            assert.strictEqual(yield* nextQos, qos)
          }
        }))

      it.effect("many packets in one piece, from the CONNECT to the DISCONNECT, are understood in their order", () =>
        Effect.gen(function*() {
          const device = yield* Fixtures.createDevice()
          const wire = yield* RawMqttSocket.open()
          const ids = Array.from({ length: 500 }, (_, i) => i + 1)
          yield* wire.write(
            connectPacket(device),
            ...ids.map((id) => post(device, { n: id }, { qos: 1, messageId: id })),
            ping
          )
          const [connack, ...answers] = yield* wire.takeN(ids.length + 2)
          assert.deepInclude(connack, { cmd: "connack", returnCode: 0 })
          assert.deepStrictEqual(answers.flatMap((each) => each.cmd === "puback" ? [each.messageId] : []), ids)
          assert.deepStrictEqual(yield* CloudState.reported(device), { n: 500 })
          assert.deepStrictEqual(yield* CloudState.samples(device, "n"), ids)
        }))

      it.effect("a kept session is present when its device comes back, a clean one is not", () =>
        Effect.gen(function*() {
          const device = yield* Fixtures.createDevice()
          const sessions = [
            [false, false],
            [false, true],
            [false, true],
            [true, false],
            [false, false],
            [false, true]
          ] as const
          for (const [clean, present] of sessions) {
            const wire = yield* RawMqttSocket.connect(device, { clean })
            assert.strictEqual(wire.sessionPresent, present)
            yield* wire.write(subscribe(1, [topicOf(device, "thing/service/#"), 1]))
            yield* wire.take
            yield* cut(device, wire)
          }
        }))

      it.effect("a kept session keeps its subscriptions, whatever the client id, until it is replaced by a clean one", () =>
        Effect.gen(function*() {
          const device = yield* Fixtures.createDevice()
          const first = yield* RawMqttSocket.connect(device, { clean: false })
          yield* first.write(
            subscribe(1, [topicOf(device, "thing/service/#"), 0], [topicOf(device, "rrpc/request/+"), 1]),
            unsubscribe(2, topicOf(device, "rrpc/request/+"))
          )
          yield* first.takeN(2)
          yield* cut(device, first)
          // A subscription of QoS 0 shows in what is delivered.
          const { password, ...names } = credentials(device, { clientId: "another" })
          const another = { ...names, password: Buffer.from(password) }
          for (const [clean, qos] of [[false, 0], [false, 0], [true, 1], [false, 1]] as const) {
            const wire = yield* RawMqttSocket.connect(device, { clean, ...another })
            const command = yield* setProperty(device, { a: 1 })
            const delivered = yield* wire.take
            assert.deepInclude(delivered, { cmd: "publish", qos })
            yield* wire.write(
              publish(topicOf(device, "thing/service/property/set_reply"), {
                payload: JSON.stringify({ id: String(command.messageId), code: 200, data: {} }),
                qos: 1,
                messageId: 9
              })
            )
            assert.deepInclude(yield* wire.take, { cmd: "puback", messageId: 9 })
            yield* cut(device, wire)
          }
        }))

      it.effect("a message of QoS 2 takes effect once, also when it is sent again on the session's next connection", () =>
        Effect.gen(function*() {
          const device = yield* Fixtures.createDevice()
          const message = post(device, { n: 1 }, { qos: 2, messageId: 21 })
          const first = yield* RawMqttSocket.connect(device, { clean: false })
          yield* first.write(message)
          assert.deepInclude(yield* first.take, { cmd: "pubrec", messageId: 21 })
          yield* cut(device, first)
          const second = yield* RawMqttSocket.connect(device, { clean: false })
          // Otherwise the device may give its next message the same packet identifier.
          assert.isTrue(second.sessionPresent)
          yield* second.write({ ...message, dup: true })
          assert.deepInclude(yield* second.take, { cmd: "pubrec", messageId: 21 })
          yield* second.write({ cmd: "pubrel", messageId: 21 })
          assert.deepInclude(yield* second.take, { cmd: "pubcomp", messageId: 21 })
          assert.deepStrictEqual(yield* CloudState.samples(device, "n"), [1])
          yield* cut(device, second)
          const third = yield* RawMqttSocket.connect(device, { clean: false })
          assert.isFalse(third.sessionPresent)
        }))

      it.effect.each([true, false])(
        "what a device did not acknowledge is delivered again when it comes back, what it answered is not (clean: %s)",
        (clean) =>
          Effect.gen(function*() {
            const device = yield* Fixtures.createDevice()
            const first = yield* RawMqttSocket.connect(device, { clean })
            const lost = yield* setProperty(device, { a: 1 })
            const answered = yield* setProperty(device, { b: 2 })
            const [one, two] = yield* first.takeN(2)
            assert.deepInclude(one, { cmd: "publish", qos: 1, dup: false })
            yield* first.write(
              { cmd: "puback", messageId: two!.messageId! },
              publish(topicOf(device, "thing/service/property/set_reply"), {
                payload: JSON.stringify({ id: String(answered.messageId), code: 200, data: {} }),
                qos: 0
              })
            )
            yield* CloudState.untilState(answered, "succeeded")
            yield* cut(device, first)
            const second = yield* RawMqttSocket.connect(device, { clean })
            const again = yield* second.take
            assert.deepInclude(again, { cmd: "publish", qos: 1, topic: topicOf(device, "thing/service/property/set") })
            assert.deepInclude(payloadOf(again), { id: String(lost.messageId), params: { a: 1 } })
            yield* second.write({ cmd: "puback", messageId: again.messageId! }, ping)
            assert.deepInclude(yield* second.take, { cmd: "pingresp" })
          })
      )
    }
  )
}
