import { Commands, defaultProjectId, type Device, Devices } from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { CloudState, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { IConnectPacket, ISubscribePacket, IUnsubscribePacket, Packet } from "mqtt-packet"
import { storages } from "../../../vitest.storages.ts"

/** A connection of a new device. */
const connectNew = Effect.gen(function*() {
  const device = yield* Fixtures.createDevice()
  return { device, wire: yield* RawMqttSocket.connect(device) }
})

const { connectPacket, encode, payloadOf, post, publish } = RawMqttSocket
const { credentials, topicOf } = MqttDevice

const setProperty = ({ deviceId }: Device, params: Readonly<Record<string, number>>) =>
  Effect.flatMap(Commands, (commands) => commands.setProperties(defaultProjectId, deviceId, params))

/** Ends the connection without a word. */
const cut = Effect.fnUntraced(function*(device: Device, { socket }: RawMqttSocket.RawMqttSocket) {
  socket.destroy()
  yield* CloudState.untilStatus(device, "offline")
})

const ping: Packet = { cmd: "pingreq" }

const subscribe = (
  messageId: number,
  ...topics: ReadonlyArray<readonly [topic: string, qos: 0 | 1 | 2]>
): ISubscribePacket => ({
  cmd: "subscribe",
  messageId,
  subscriptions: topics.map(([topic, qos]) => ({ topic, qos }))
})

const unsubscribe = (messageId: number, ...unsubscriptions: Array<string>): IUnsubscribePacket => ({
  cmd: "unsubscribe",
  messageId,
  unsubscriptions
})

/** A connection that has answered so often is not about to be closed. */
const maxAnswers = 20

/** Sends bytes, and waits for the end of the connection. Answers what came back until then. */
const closedBy = Effect.fnUntraced(
  function*(wire: RawMqttSocket.RawMqttSocket, ...parts: ReadonlyArray<Packet | Uint8Array>) {
    const received: Array<Packet> = []
    yield* wire.write(...parts, ping)
    while (received.filter(({ cmd }) => cmd === "pingresp").length < maxAnswers) {
      const packet = yield* wire.next
      if (packet === undefined) return received
      received.push(packet)
      if (packet.cmd === "pingresp") yield* wire.write(ping)
    }
    return assert.fail("The connection is still open")
  }
)

type Bytes = Uint8Array | ReadonlyArray<number>

const join = (...parts: ReadonlyArray<Bytes>) => Buffer.concat(parts.map((part) => Uint8Array.from(part)))

/** A packet with a body of less than 128 bytes. */
const packet = (firstByte: number, ...body: ReadonlyArray<Bytes>): Buffer => {
  const bytes = join(...body)
  return join([firstByte, bytes.length], bytes)
}

const bytesOf = (value: string): Bytes => Buffer.from(value)

/** With its length before it. */
const text = (value: Bytes): Buffer => join([value.length >> 8, value.length & 0xff], value)

/** The CONNECT with another protocol level, or other flags. */
const altered = (
  connect: IConnectPacket,
  change: { readonly level?: number; readonly flags?: (was: number) => number }
): Buffer => {
  const bytes = Buffer.from(encode(connect))
  const name = bytes.indexOf(connect.protocolId ?? "MQTT")
  const levelAt = name + (connect.protocolId ?? "MQTT").length
  bytes[levelAt] = change.level ?? bytes[levelAt]!
  bytes[levelAt + 1] = change.flags?.(bytes[levelAt + 1]!) ?? bytes[levelAt + 1]!
  return bytes
}

const cleanSessionFlag = 0x02

layer(MqttTestServer.layer(StorageMemory.layer), { excludeTestServices: true })("packets of MQTT 3.1.1", (it) => {
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

  it.effect.each([0, 1, 2, 5, 6, 9, 127, 128, 131, 132, 255])(
    "protocol level %i is refused with code 1 whatever the credentials",
    (level) =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        for (const protocolId of ["MQTT", "MQIsdp"] as const) {
          const wire = yield* RawMqttSocket.open()
          const connect = connectPacket(device, { protocolId, protocolVersion: level === 5 ? 5 : 4 })
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

  it.effect.each<readonly [string, boolean]>([
    ["after the CONNACK", false],
    ["in one piece with the first", true]
  ])("a second CONNECT closes the connection, %s", ([, together]) =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const other = yield* Fixtures.createDevice()
      if (together) {
        const wire = yield* RawMqttSocket.open()
        const received = yield* closedBy(wire, connectPacket(device), connectPacket(other))
        assert.isAtMost(received.filter(({ cmd }) => cmd === "connack").length, 1)
      } else {
        const wire = yield* RawMqttSocket.connect(device)
        assert.deepStrictEqual(yield* closedBy(wire, connectPacket(other)), [])
      }
      const { device: read } = yield* (yield* Devices).get(defaultProjectId, other)
      assert.strictEqual(read.status, "unactive")
    }))

  it.effect.each<readonly [string, Packet]>([
    ["a PUBLISH", publish("a")],
    ["a PUBACK", { cmd: "puback", messageId: 1 }],
    ["a PUBREC", { cmd: "pubrec", messageId: 1 }],
    ["a PUBREL", { cmd: "pubrel", messageId: 1 }],
    ["a PUBCOMP", { cmd: "pubcomp", messageId: 1 }],
    ["a SUBSCRIBE", subscribe(1, ["a", 0])],
    ["an UNSUBSCRIBE", unsubscribe(1, "a")],
    ["a PINGREQ", ping],
    ["a DISCONNECT", { cmd: "disconnect" }]
  ])(
    "%s before the CONNECT closes the connection, and the CONNECT is not read",
    ([, first]) =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const wire = yield* RawMqttSocket.open()
        yield* wire.write(first, connectPacket(device))
        assert.deepStrictEqual(yield* wire.rest, [])
        assert.strictEqual((yield* (yield* Devices).get(defaultProjectId, device)).device.status, "unactive")
      })
  )

  it.effect("what follows a DISCONNECT is not read", () =>
    Effect.gen(function*() {
      const { device, wire } = yield* connectNew
      yield* wire.write(post(device, { a: 1 }), { cmd: "disconnect" }, post(device, { b: 2 }))
      assert.deepStrictEqual(yield* wire.rest, [])
      yield* CloudState.untilStatus(device, "offline")
      assert.deepStrictEqual(yield* CloudState.reported(device), { a: 1 })
    }))

  it.effect.each<readonly [string, Bytes]>([
    ["a reserved packet type 0", [0x00, 0]],
    ["a reserved packet type 15", [0xf0, 0]],
    ["a PUBLISH with both bits of the QoS", [0x36, 5, 0, 1, 0x61, 0, 1]],
    ["a PUBACK with flags", [0x41, 2, 0, 1]],
    ["a PUBREC with flags", [0x52, 2, 0, 1]],
    ["a PUBREL without its flags", [0x60, 2, 0, 1]],
    ["a PUBCOMP with flags", [0x74, 2, 0, 1]],
    ["a SUBSCRIBE without its flags", packet(0x80, [0, 1], text([0x61]), [0])],
    ["an UNSUBSCRIBE without its flags", packet(0xa0, [0, 1], text([0x61]))],
    ["a PINGREQ with flags", [0xc1, 0]],
    ["a DISCONNECT with flags", [0xe8, 0]]
  ])("%s closes the connection", ([, bytes]) =>
    Effect.gen(function*() {
      const { wire } = yield* connectNew
      assert.deepStrictEqual(yield* closedBy(wire, Uint8Array.from(bytes)), [])
    }))

  it.effect.each<readonly [string, Bytes]>([
    ["a CONNACK", [0x20, 2, 0, 0]],
    ["a SUBACK", [0x90, 3, 0, 1, 0]],
    ["an UNSUBACK", [0xb0, 2, 0, 1]],
    ["a PINGRESP", [0xd0, 0]]
  ])("%s, which only servers send, closes the connection", ([, bytes]) =>
    Effect.gen(function*() {
      const { wire } = yield* connectNew
      assert.deepStrictEqual(yield* closedBy(wire, Uint8Array.from(bytes)), [])
    }))

  it.effect.each<readonly [string, (connect: IConnectPacket) => Buffer]>([
    ["header flags", (connect) => Buffer.from(encode(connect)).fill(0x11, 0, 1)],
    ["the reserved connect flag", (connect) => altered(connect, { flags: (was) => was | 0x01 })],
    ["the QoS of a will but no will", (connect) => altered(connect, { flags: (was) => was | 0x08 })],
    ["a retained will but no will", (connect) => altered(connect, { flags: (was) => was | 0x20 })],
    [
      "a will of QoS 3",
      (connect) => altered({ ...connect, will: { topic: "a", payload: "b", qos: 0 } }, { flags: (was) => was | 0x18 })
    ],
    ["another protocol name", (connect) => {
      const bytes = Buffer.from(encode(connect))
      bytes.write("MQTX", bytes.indexOf("MQTT"))
      return bytes
    }]
  ])("a CONNECT with %s closes the connection without a CONNACK", ([, change]) =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const wire = yield* RawMqttSocket.open()
      assert.deepStrictEqual(yield* closedBy(wire, change(connectPacket(device))), [])
    }))

  it.effect.each<readonly [string, Bytes]>([
    ["a remaining length of five bytes", [0x30, 0xff, 0xff, 0xff, 0xff, 0x01]],
    ["a PUBLISH that is too short for its topic", [0x30, 4, 0, 9, 0x61, 0x62]],
    ["a PUBLISH of QoS 1 that is too short for its packet identifier", [0x32, 3, 0, 1, 0x61]],
    ["a PUBLISH without content", [0x30, 0]],
    ["a SUBSCRIBE that is too short for its filter", [0x82, 6, 0, 1, 0, 9, 0x61, 0x62]],
    ["a SUBSCRIBE without the QoS of its filter", packet(0x82, [0, 1], text([0x61]))],
    ["a SUBSCRIBE without content", [0x82, 0]],
    ["a SUBSCRIBE without filters", [0x82, 2, 0, 1]],
    ["a SUBSCRIBE of QoS 3", packet(0x82, [0, 1], text([0x61]), [3])],
    ["a SUBSCRIBE with reserved bits", packet(0x82, [0, 1], text([0x61]), [4])],
    ["an UNSUBSCRIBE without filters", [0xa2, 2, 0, 1]],
    ["an UNSUBSCRIBE that is too short for its filter", [0xa2, 6, 0, 1, 0, 9, 0x61, 0x62]],
    ["a PUBACK without a packet identifier", [0x40, 0]],
    ["a PUBREL without a packet identifier", [0x62, 0]],
    ["a PUBACK that is too long", [0x40, 3, 0, 1, 0]],
    ["a PINGREQ with content", [0xc0, 1, 0]]
  ])("%s closes the connection", ([, bytes]) =>
    Effect.gen(function*() {
      const { wire } = yield* connectNew
      assert.deepStrictEqual(yield* closedBy(wire, Uint8Array.from(bytes)), [])
    }))

  it.effect.each<readonly [string, Bytes]>([
    ["a PUBLISH of QoS 1", packet(0x32, text([0x61]), [0, 0])],
    ["a PUBLISH of QoS 2", packet(0x34, text([0x61]), [0, 0])],
    ["a SUBSCRIBE", packet(0x82, [0, 0], text([0x61]), [0])],
    ["an UNSUBSCRIBE", packet(0xa2, [0, 0], text([0x61]))]
  ])("%s with packet identifier 0 closes the connection", ([, bytes]) =>
    Effect.gen(function*() {
      const { wire } = yield* connectNew
      assert.deepStrictEqual(yield* closedBy(wire, Uint8Array.from(bytes)), [])
    }))

  it.effect.each<readonly [string, Bytes]>([
    ["an empty topic", packet(0x30, text([]))],
    ["a topic with +", packet(0x30, text(bytesOf("a/+")))],
    ["a topic with #", packet(0x30, text(bytesOf("a/#")))],
    ["a topic with a NUL", packet(0x30, text([0x61, 0, 0x62]))],
    ["a topic of ill-formed UTF-8", packet(0x30, text([0x61, 0xc3, 0x28]))],
    ["a topic with a surrogate", packet(0x30, text([0xed, 0xa0, 0x80]))],
    ["an empty filter", packet(0x82, [0, 1], text([]), [0])],
    ["a filter with # before its end", packet(0x82, [0, 1], text(bytesOf("a/#/b")), [0])],
    ["a filter with # within a level", packet(0x82, [0, 1], text(bytesOf("a/b#")), [0])],
    ["a filter with + within a level", packet(0x82, [0, 1], text(bytesOf("a/b+/c")), [0])],
    ["a filter with a NUL", packet(0x82, [0, 1], text([0x61, 0, 0x62]), [0])],
    ["a filter of ill-formed UTF-8", packet(0x82, [0, 1], text([0x61, 0xff]), [0])]
  ])("%s closes the connection", ([, bytes]) =>
    Effect.gen(function*() {
      const { wire } = yield* connectNew
      assert.deepStrictEqual(yield* closedBy(wire, Uint8Array.from(bytes)), [])
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
          yield* second.write({ ...message, dup: true })
          assert.deepInclude(yield* second.take, { cmd: "pubrec", messageId: 21 })
          yield* second.write({ cmd: "pubrel", messageId: 21 })
          assert.deepInclude(yield* second.take, { cmd: "pubcomp", messageId: 21 })
          assert.deepStrictEqual(yield* CloudState.samples(device, "n"), [1])
        }))

      it.effect.each([true, false])(
        "what a device did not acknowledge is delivered again when it comes back, what it did is not (clean: %s)",
        (clean) =>
          Effect.gen(function*() {
            const device = yield* Fixtures.createDevice()
            const first = yield* RawMqttSocket.connect(device, { clean })
            const lost = yield* setProperty(device, { a: 1 })
            const acknowledged = yield* setProperty(device, { b: 2 })
            const [one, two] = yield* first.takeN(2)
            assert.deepInclude(one, { cmd: "publish", qos: 1, dup: false })
            yield* first.write({ cmd: "puback", messageId: two!.messageId! })
            yield* CloudState.untilState(acknowledged, "acked")
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
