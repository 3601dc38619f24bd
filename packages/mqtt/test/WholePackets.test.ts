import { assert, it } from "@effect/vitest"
import { generate, type Packet, parser } from "mqtt-packet"
import { type Publish, takeWhole } from "../src/protocol/WholePackets.ts"
import { Dice } from "./Dice.ts"

/** What is taken of the bytes, and how many they are. */
const take = (bytes: Buffer, mayGoOn = () => true) => {
  const packets: Array<Publish | number> = []
  const taken = takeWhole(bytes, {
    onPublish: (packet) => packets.push(packet),
    onAcknowledge: (packetId) => packets.push(packetId),
    mayGoOn
  })
  return { taken, packets }
}

/** What the parser of all packets reads in the bytes, in the same form. */
const parse = (bytes: Buffer): ReadonlyArray<unknown> => {
  const packets: Array<unknown> = []
  const all = parser()
  all.on("packet", (packet: Packet) => {
    if (packet.cmd !== "publish") return packets.push(packet.messageId)
    const { cmd, dup, length, messageId, payload, qos, retain, topic } = packet
    return packets.push({ cmd, dup, length, messageId, payload: Buffer.from(payload), qos, retain, topic })
  })
  all.parse(bytes)
  return packets
}

/** Lengths whose sum with a topic takes one byte, two or three to say. */
const payloadLengths = [0, 1, 60, 110, 125, 130, 16_200, 16_380, 16_400]

const anyPacket = (dice: Dice): Packet => {
  const messageId = 1 + dice.below(65_535)
  if (dice.chance(0.3)) return { cmd: "puback", messageId }
  const publish = {
    cmd: "publish",
    topic: dice.pick(["/", "a", "/sys/k/d/thing/event/property/post", "/k/ü☂/user/\u{1f321}", "t".repeat(150)]),
    payload: dice.bytes(dice.pick(payloadLengths)),
    retain: dice.chance(0.3)
  } as const
  return dice.chance(0.5)
    ? { ...publish, qos: 0, dup: false }
    : { ...publish, qos: 1, dup: dice.chance(0.3), messageId }
}

it("takes the packets that are whole, as the parser of all packets reads them", () => {
  for (let seed = 0; seed < 300; seed++) {
    const dice = new Dice(seed)
    const each = dice.many(dice.below(5), () => generate(anyPacket(dice)))
    const bytes = Buffer.concat(each)
    const part = bytes.subarray(0, dice.below(bytes.length + 1))
    const { packets, taken } = take(part)
    const ends = each.map((_, i) => Buffer.concat(each.slice(0, i + 1)).length).filter((end) => end <= part.length)
    assert.strictEqual(taken, ends.at(-1) ?? 0, `seed ${seed}`)
    assert.strictEqual(packets.length, ends.length, `seed ${seed}`)
    assert.deepStrictEqual(packets, parse(part.subarray(0, taken)), `seed ${seed}`)
  }
})

it.each([
  ["of another kind", [0xc0, 0]],
  ["of QoS 2", [0x34, 6, 0, 1, 97, 0, 1, 33]],
  ["of QoS 3", [0x36, 6, 0, 1, 97, 0, 1, 33]],
  ["with packet identifier 0", [0x32, 6, 0, 1, 97, 0, 0, 33]],
  ["whose topic is longer than it", [0x30, 4, 0, 3, 97, 98]],
  ["without its packet identifier", [0x32, 4, 0, 1, 97, 0]],
  ["without a topic", [0x30, 1, 0]],
  ["whose length takes five bytes", [0x30, 0xff, 0xff, 0xff, 0xff, 1]],
  ["a PUBACK with flags", [0x42, 2, 0, 1]],
  ["a PUBACK of another length", [0x40, 3, 0, 1, 0]],
  ["a PUBACK of packet 0", [0x40, 2, 0, 0]]
] as ReadonlyArray<readonly [string, ReadonlyArray<number>]>)(
  "leaves to the parser of all packets one %s",
  (_, bytes) => {
    const good = generate({ cmd: "puback", messageId: 7 })
    assert.deepStrictEqual(take(Buffer.concat([good, Buffer.from(bytes)])), { taken: good.length, packets: [7] })
  }
)

it("stops when it may not go on", () => {
  const good = generate({ cmd: "puback", messageId: 7 })
  let left = 1
  assert.strictEqual(take(Buffer.concat([good, good]), () => left-- > 0).taken, good.length)
})
