import { defaultProjectId, Devices } from "@device-cloud/core"
import { CloudState, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { IConnectPacket } from "mqtt-packet"
import { altered, cleanSessionFlag, connectNew, ping, subscribe, unsubscribe } from "./RawPackets.ts"

const { connectPacket, encode, post, publish } = RawMqttSocket
const { credentials, topicOf } = MqttDevice

layer(MqttTestServer.layerMemory, { excludeTestServices: true })("packets of MQTT 3.1.1", (it) => {
  it.effect.each<readonly [string, Partial<IConnectPacket>]>([
    ["3.1", { protocolId: "MQIsdp", protocolVersion: 3 }],
    ["3.1.1", { protocolId: "MQTT", protocolVersion: 4 }]
  ])("MQTT %s is spoken", ([, fields]) =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const wire = yield* RawMqttSocket.connect(device, fields)
      yield* wire.write(post(device, { a: 1 }, { qos: 1, messageId: 1 }))
      assert.deepInclude(yield* wire.take, { cmd: "puback", messageId: 1 })
    }))

  it.effect.each([0, 1, 2, 6, 9, 127, 128, 131, 132, 255])(
    "protocol level %i is refused with code 1 whatever the credentials",
    (level) =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        for (const protocolId of ["MQTT", "MQIsdp"] as const) {
          const wire = yield* RawMqttSocket.open()
          const connect = connectPacket(device, { protocolId, protocolVersion: 4 })
          yield* wire.write(altered(connect, { level }), connectPacket(device))
          const [connack, ...more] = yield* wire.rest
          assert.deepInclude(connack, { cmd: "connack", returnCode: 1, sessionPresent: false })
          assert.strictEqual(more.length, 0)
        }
        assert.strictEqual((yield* (yield* Devices).get(defaultProjectId, device)).device.status, "unactive")
      })
  )

  it.effect("an empty client id is accepted with a clean session, and refused with code 2 without one", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const { password, ...names } = credentials(device, { clientId: "", extension: "" })
      const connect = connectPacket(device, { ...names, password: Buffer.from(password) })
      const accepted = yield* RawMqttSocket.open()
      yield* accepted.write(connect)
      assert.deepInclude(yield* accepted.take, { cmd: "connack", returnCode: 0, sessionPresent: false })
      const refused = yield* RawMqttSocket.open()
      yield* refused.write(altered(connect, { flags: (was) => was & ~cleanSessionFlag }))
      const [connack, ...more] = yield* refused.rest
      assert.deepInclude(connack, { cmd: "connack", returnCode: 2, sessionPresent: false })
      assert.strictEqual(more.length, 0)
    }))

  it.effect("a PUBREL of an unknown message is completed", () =>
    Effect.gen(function*() {
      const { wire } = yield* connectNew
      yield* wire.write({ cmd: "pubrel", messageId: 4711 })
      assert.deepInclude(yield* wire.take, { cmd: "pubcomp", messageId: 4711 })
    }))

  it.effect("an acknowledgement of something that was not sent is ignored", () =>
    Effect.gen(function*() {
      const { wire } = yield* connectNew
      yield* wire.write({ cmd: "puback", messageId: 4711 }, { cmd: "pubcomp", messageId: 4711 }, ping)
      assert.deepInclude(yield* wire.take, { cmd: "pingresp" })
    }))

  it.effect.each([true, false])(
    "a PUBREC of something that was not sent is answered (clean: %s)",
    (clean) =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const wire = yield* RawMqttSocket.connect(device, { clean })
        yield* wire.write({ cmd: "pubrec", messageId: 4711 }, { cmd: "pubcomp", messageId: 4711 })
        assert.deepInclude(yield* wire.take, { cmd: "pubrel", messageId: 4711 })
        yield* wire.write(ping)
        assert.deepInclude(yield* wire.take, { cmd: "pingresp" })
      })
  )

  it.effect("what the cloud sends is neither retained nor a duplicate", () =>
    Effect.gen(function*() {
      const { device, wire } = yield* connectNew
      yield* wire.write(post(device, { a: 1 }, { qos: 1, messageId: 1, id: "1", retain: true, dup: true }))
      const [puback, reply] = yield* wire.takeN(2)
      assert.deepInclude(puback, { cmd: "puback", messageId: 1 })
      assert.deepInclude(reply, { cmd: "publish", retain: false, dup: false, qos: 1 })
    }))

  it.effect("a PINGREQ is answered", () =>
    Effect.gen(function*() {
      const { wire } = yield* connectNew
      yield* wire.write(ping, ping)
      for (const answer of yield* wire.takeN(2)) assert.deepInclude(answer, { cmd: "pingresp" })
    }))

  it.effect("a connection that is silent for longer than its keep-alive is closed", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const talking = yield* RawMqttSocket.connect(device, { keepalive: 1 })
      assert.deepStrictEqual(yield* talking.rest, [])
      yield* CloudState.untilStatus(device, "offline")
    }))

  it.effect("each filter of a SUBSCRIBE gets its code in its place: the QoS that is granted, or a refusal", () =>
    Effect.gen(function*() {
      const { device, wire } = yield* connectNew
      const other = yield* Fixtures.createDevice()
      const own = topicOf(device, "thing/service/property/set")
      yield* wire.write(subscribe(
        17,
        [own, 0],
        [topicOf(other, "thing/service/property/set"), 0],
        [topicOf(device, "thing/event/+/post_reply"), 1],
        ["#", 1],
        ["$SYS/#", 1],
        ["$SYS/broker/clients", 0],
        ["/sys/+/+/#", 2],
        [`/ota/device/upgrade/${device.productKey}/${device.deviceName}`, 1]
      ))
      assert.deepInclude(yield* wire.take, {
        cmd: "suback",
        messageId: 17,
        granted: [0, 128, 1, 128, 128, 128, 128, 1]
      })
      yield* wire.write(subscribe(18, [topicOf(device, "#"), 2]))
      const suback = yield* wire.take
      assert.deepInclude(suback, { cmd: "suback", messageId: 18 })
      assert.include([1, 2], suback.cmd === "suback" ? suback.granted[0] : undefined)
    }))

  it.effect.each([true, false])(
    "a filter that comes twice in a SUBSCRIBE gets both codes, and the later counts (clean: %s)",
    (clean) =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const wire = yield* RawMqttSocket.connect(device, { clean })
        const topic = topicOf(device, "thing/event/property/post_reply")
        yield* wire.write(subscribe(3, [topic, 1], ["/other", 1], [topic, 0], [topicOf(device, "#"), 0]))
        assert.deepInclude(yield* wire.take, { cmd: "suback", messageId: 3, granted: [1, 128, 0, 0] })
        yield* wire.write(post(device, { a: 1 }, { qos: 1, messageId: 1, id: "1" }))
        assert.deepInclude(yield* wire.take, { cmd: "puback" })
        assert.deepInclude(yield* wire.take, { cmd: "publish", topic, qos: 0 })
      })
  )

  it.effect("an UNSUBSCRIBE is acknowledged, also of what was not subscribed", () =>
    Effect.gen(function*() {
      const { device, wire } = yield* connectNew
      const own = topicOf(device, "thing/service/property/set")
      yield* wire.write(subscribe(1, [own, 0]), unsubscribe(2, own, "never/subscribed"), unsubscribe(3, own))
      assert.deepStrictEqual((yield* wire.takeN(3)).map(({ cmd, messageId }) => [cmd, messageId]), [
        ["suback", 1],
        ["unsuback", 2],
        ["unsuback", 3]
      ])
    }))

  it.effect("a message to a $SYS topic is without effect, and the connection stays", () =>
    Effect.gen(function*() {
      const { wire } = yield* connectNew
      yield* wire.write(publish("$SYS/broker/clients"), publish("$SYS/x", { qos: 1, messageId: 5 }), ping)
      const answers = yield* wire.takeN(2)
      assert.sameMembers(answers.map(({ cmd }) => cmd), ["puback", "pingresp"])
    }))

  it.effect("what follows a DISCONNECT is not read", () =>
    Effect.gen(function*() {
      const { device, wire } = yield* connectNew
      yield* wire.write(post(device, { a: 1 }), { cmd: "disconnect" }, post(device, { b: 2 }))
      assert.deepStrictEqual(yield* wire.rest, [])
      yield* CloudState.untilStatus(device, "offline")
      assert.deepStrictEqual(yield* CloudState.reported(device), { a: 1 })
    }))

  it.effect("packets are understood byte by byte", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const wire = yield* RawMqttSocket.open()
      const packets = [
        connectPacket(device),
        subscribe(1, [topicOf(device, "thing/service/#"), 1]),
        post(device, { a: 1 }, { qos: 1, messageId: 2 }),
        post(device, { b: "x".repeat(200) }, { qos: 2, messageId: 3 }),
        { cmd: "pubrel", messageId: 3 },
        ping
      ] as const
      yield* Effect.forEach(
        Buffer.concat(packets.map(encode)),
        (byte) =>
          Effect.callback<void>((resume) => {
            wire.socket.write(Uint8Array.of(byte), () => resume(Effect.void))
          }),
        { discard: true }
      )
      assert.sameMembers((yield* wire.takeN(6)).map(({ cmd }) => cmd), [
        "connack",
        "suback",
        "puback",
        "pubrec",
        "pubcomp",
        "pingresp"
      ])
      assert.deepStrictEqual(yield* CloudState.reported(device), { a: 1, b: "x".repeat(200) })
    }))

  it.effect("a large message in small pieces is understood", () =>
    Effect.gen(function*() {
      const { device, wire } = yield* connectNew
      const text = "x".repeat(10_000)
      const bytes = encode(post(device, { text }, { qos: 1, messageId: 1 }))
      for (let at = 0; at < bytes.length; at += 100) yield* wire.write(bytes.subarray(at, at + 100))
      assert.deepInclude(yield* wire.take, { cmd: "puback", messageId: 1 })
      assert.deepStrictEqual(yield* CloudState.reported(device), { text })
    }))
})
