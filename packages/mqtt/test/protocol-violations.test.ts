import { defaultProjectId, Devices } from "@device-cloud/core"
import { Fixtures } from "@device-cloud/testing"
import { MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { IConnectPacket, Packet } from "mqtt-packet"
import {
  altered,
  type Bytes,
  bytesOf,
  closedBy,
  connectNew,
  packet,
  ping,
  subscribe,
  text,
  unsubscribe
} from "./RawPackets.ts"

const { connectPacket, encode, publish } = RawMqttSocket

/** The packet, with the length that it has; its own length takes two bytes. */
const resized = (bytes: Buffer): Buffer => {
  const length = bytes.length - 3
  bytes[1] = length % 128 | 0x80
  bytes[2] = length >> 7
  return bytes
}

layer(MqttTestServer.layerMemory, { excludeTestServices: true })("what breaks MQTT 3.1.1", (it) => {
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
    ...["", "a/+", "a/#", "a\0b"].map((topic) =>
      [`a will on the topic ${JSON.stringify(topic)}`, (connect: IConnectPacket) => {
        const bytes = Buffer.from(encode({ ...connect, will: { topic: "topic", payload: "b", qos: 0 } }))
        const at = bytes.indexOf("topic")
        const name = Buffer.from(topic)
        // The library writes no CONNECT with such a will.
        return resized(
          Buffer.concat([bytes.subarray(0, at - 2), Buffer.from([0, name.length]), name, bytes.subarray(at + 5)])
        )
      }] as const
    ),
    ["bytes behind its fields", (connect) => resized(Buffer.concat([encode(connect), Buffer.from([0xc0, 0])]))],
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
    ["a filter with + in front of its last letter", packet(0x82, [0, 1], text(bytesOf("a/+b")), [0])],
    ["a filter with + behind its first letter", packet(0x82, [0, 1], text(bytesOf("a+/b")), [0])],
    ["an UNSUBSCRIBE from a filter with + in front of its last letter", packet(0xa2, [0, 1], text(bytesOf("a/+b")))],
    ["a filter with a NUL", packet(0x82, [0, 1], text([0x61, 0, 0x62]), [0])],
    ["a filter of ill-formed UTF-8", packet(0x82, [0, 1], text([0x61, 0xff]), [0])]
  ])("%s closes the connection", ([, bytes]) =>
    Effect.gen(function*() {
      const { wire } = yield* connectNew
      assert.deepStrictEqual(yield* closedBy(wire, Uint8Array.from(bytes)), [])
    }))
})
