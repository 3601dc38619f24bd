/**
 * What no device should send: valid packets with everything in them that may be
 * odd, and packets that are no longer valid. The same seed gives the same input.
 */
import type { Device } from "@device-cloud/core"
import { RawMqttSocket } from "@device-cloud/testing/mqtt"
import { generate, type IConnectPacket, type Packet } from "mqtt-packet"
import type { Dice } from "./Dice.ts"
import { payload } from "./OddPayloads.ts"

/** What stands behind `/sys/{product key}/{device name}/`. */
const methodPaths: ReadonlyArray<string> = [
  "thing/event/property/post",
  "thing/event/property/post",
  "thing/event/property/post",
  "thing/event/property/batch/post",
  "thing/event/property/pack/post",
  "thing/event/property/history/post",
  "thing/event/alarm/post",
  "thing/event/__proto__/post",
  "thing/event//post",
  "thing/event/a\ud800/post",
  `thing/event/${"e".repeat(300)}/post`,
  "thing/property/desired/get",
  "thing/property/desired/delete",
  "thing/deviceinfo/update",
  "thing/deviceinfo/delete",
  "thing/deviceinfo/get",
  "thing/config/get",
  "thing/config/log/get",
  "thing/log/post",
  "thing/dsltemplate/get",
  "thing/dynamicTsl/get",
  "thing/model/up_raw",
  "_thing/diag/post",
  "thing/service/property/set_reply",
  "thing/service/property/get_reply",
  "thing/service/reset_reply",
  "thing/service/__proto___reply",
  "thing/config/push_reply",
  "thing/sub/register",
  "thing/sub/unregister",
  "thing/topo/add",
  "thing/topo/delete",
  "thing/topo/get",
  "thing/list/found",
  "thing/gateway/permit_reply",
  "thing/disable_reply",
  "thing/ota/firmware/get",
  "thing/file/download",
  "thing/bind/post",
  "thing/mesh/raw",
  "thing/mesh/raw_reply",
  "thing/mesh/add",
  "thing/mesh/delete",
  "thing/mesh/get",
  "rrpc/response/1",
  "rrpc/response/",
  "thing",
  "thing/",
  "",
  "no/such/method",
  "thing/event/property/post?_rid=1",
  "thing/event/property/post?",
  "?thing/event/property/post"
]

const topic = (dice: Dice, device: Device, victim: Device): string => {
  const whose = dice.chance(0.98) ? device : victim
  const { deviceName, productKey } = whose
  const own = `${productKey}/${deviceName}`
  if (dice.chance(0.75)) return `/sys/${own}/${dice.pick(methodPaths)}`
  return dice.pick([
    `/shadow/update/${own}`,
    `/shadow/update/${own}`,
    `/shadow/get/${own}`,
    `/ext/ntp/${own}/request`,
    `/ext/session/${own}/combine/login`,
    `/ext/session/${own}/combine/logout`,
    `/ext/session/${own}/combine/batch_login`,
    `/ext/rrpc/5/sys/${own}/thing/service/reset`,
    `/ext/error/${own}`,
    `/ota/device/inform/${own}`,
    `/ota/device/progress/${own}`,
    `/ota/device/request/${own}`,
    `/${own}/user/anything`,
    `/${own}/user/${"deep/".repeat(90)}`,
    `/sys/${own}`,
    `/sys/__proto__/constructor/thing/event/property/post`,
    "$SYS/broker",
    "/",
    "a",
    "x".repeat(60_000)
  ])
}

const filter = (dice: Dice, device: Device, victim: Device): string =>
  dice.pick([
    `/sys/${device.productKey}/${device.deviceName}/${dice.pick(methodPaths)}`,
    `/sys/${device.productKey}/${device.deviceName}/${dice.pick(methodPaths)}`,
    `/sys/${device.productKey}/${device.deviceName}/#`,
    `/sys/${device.productKey}/${device.deviceName}/+/+/+`,
    `/sys/${victim.productKey}/${victim.deviceName}/#`,
    `/shadow/get/${device.productKey}/${device.deviceName}`,
    "#",
    "+/+/+",
    "$SYS/#",
    "$share/g/#",
    "__proto__",
    "constructor/#"
  ])

const fatalTopics = ["a/#/b", "a/b#", "a/b+/c", "deep/".repeat(200), "$SYS/#/a"]

const qualities = [0, 0, 1, 1, 2] as const

/** A packet that a connected device may send, valid as a packet. */
const packet = (dice: Dice, device: Device, victim: Device): Packet => {
  const messageId = dice.pick([1, 2, 3, 255, 256, 65_535, 1 + dice.below(65_535)])
  const kind = dice.below(100)
  if (kind < 80) {
    const qos = dice.pick(qualities)
    const to = topic(dice, device, victim)
    return {
      cmd: "publish",
      topic: to,
      payload: payload(dice, to),
      qos,
      messageId,
      dup: qos > 0 && dice.chance(0.3),
      retain: dice.chance(0.1)
    }
  }
  if (kind < 86) {
    return {
      cmd: "subscribe",
      messageId,
      subscriptions: dice.many(1 + dice.below(4), () => ({
        topic: filter(dice, device, victim),
        qos: dice.pick(qualities)
      }))
    }
  }
  if (kind < 89) {
    return {
      cmd: "unsubscribe",
      messageId,
      unsubscriptions: dice.many(1 + dice.below(3), () => filter(dice, device, victim))
    }
  }
  return kind < 97 ? { cmd: dice.pick(["puback", "pubrel", "pubcomp"]), messageId } : { cmd: "pingreq" }
}

/** What ends a connection, or may do so. */
const lastPacket = (dice: Dice, device: Device, victim: Device): Packet =>
  dice.pick<() => Packet>([
    () => ({ cmd: "disconnect" }),
    () => ({ cmd: "pubrec", messageId: 1 }),
    () => RawMqttSocket.connectPacket(device),
    () => ({ cmd: "publish", topic: dice.pick(fatalTopics), payload: "{}", qos: 0, dup: false, retain: false }),
    () => ({ cmd: "subscribe", messageId: 1, subscriptions: [{ topic: dice.pick(fatalTopics), qos: 0 }] }),
    () => ({ cmd: "unsubscribe", messageId: 1, unsubscriptions: [dice.pick(fatalTopics)] }),
    () => ({ cmd: "suback", messageId: 1, granted: [0] }),
    () => packet(dice, device, victim)
  ])()

type Mutation = (dice: Dice, bytes: Buffer) => Buffer

const mutations: ReadonlyArray<Mutation> = [
  // Some bits are the other way round.
  (dice, bytes) => {
    for (let i = 1 + dice.below(8); i > 0; i--) bytes[dice.below(bytes.length)]! ^= 1 << dice.below(8)
    return bytes
  },
  // Near the start, where lengths and types are.
  (dice, bytes) => {
    bytes[dice.below(Math.min(bytes.length, 16))] = dice.below(256)
    return bytes
  },
  (dice, bytes) => bytes.subarray(0, dice.below(bytes.length)),
  (dice, bytes) => bytes.subarray(dice.below(bytes.length)),
  (_, bytes) => Buffer.concat([bytes, bytes]),
  (dice, bytes) => {
    const from = dice.below(bytes.length)
    const part = bytes.subarray(from, from + dice.below(64))
    return Buffer.concat([bytes.subarray(0, from), part, bytes.subarray(from)])
  },
  // Another remaining length.
  (dice, bytes) => {
    const length = Buffer.from(dice.pick([[0], [1], [127], [0x80, 0], [0xff, 0x7f], [0xff, 0xff, 0xff, 0x7f], [
      0xff,
      0xff,
      0xff,
      0xff,
      1
    ]]))
    return Buffer.concat([bytes.subarray(0, 1), length, bytes.subarray(2)])
  },
  (dice, bytes) => {
    const at = dice.below(bytes.length)
    return Buffer.concat([bytes.subarray(0, at), dice.bytes(1 + dice.below(40)), bytes.subarray(at)])
  },
  (dice, bytes) => {
    const at = dice.below(bytes.length)
    return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + dice.below(20))])
  },
  (dice) => dice.bytes(dice.below(300))
]

const mutate = (dice: Dice, bytes: Buffer): Buffer => {
  let mutated = bytes
  for (let i = 1 + dice.below(3); i > 0 && mutated.length > 0; i--) mutated = dice.pick(mutations)(dice, mutated)
  return mutated
}

const encode = (each: Packet): Buffer => Buffer.from(generate(each))

/** What a connected device sends, in pieces. Half of the times the end of it breaks the protocol. */
export const conversation = (dice: Dice, device: Device, victim: Device): ReadonlyArray<Buffer> => {
  const packets = dice.many(1 + dice.below(10), () => encode(packet(dice, device, victim)))
  if (dice.chance(0.3)) packets.reverse()
  if (dice.chance(0.2)) packets.push(encode(lastPacket(dice, device, victim)))
  else if (dice.chance(0.4)) packets.push(mutate(dice, encode(packet(dice, device, victim))))
  const all = Buffer.concat(packets)
  if (dice.chance(0.5)) return [all]
  const at = dice.below(all.length + 1)
  return [all.subarray(0, at), all.subarray(at)]
}

const clientIds = (dice: Dice): string =>
  dice.pick([
    "client-1",
    "client-1|",
    "client-1||",
    "|",
    "||",
    "|||",
    "client-1|=|",
    "client-1|,|",
    "client-1|,,=,=|",
    "client-1|signmethod=|",
    "client-1|signmethod=hmacsha1,signmethod=hmacmd5|",
    "client-1|signmethod=__proto__|",
    "client-1|SIGNMETHOD=HMACSHA1|",
    "client-1|authType=|",
    "client-1|authType=1=1|",
    "client-1|authType=4|",
    "client-1|authType=register,random=1|",
    "client-1|authType=regnwl|",
    "client-1|authType=connwl,securemode=-2|",
    "client-1|timestamp=|",
    "client-1|timestamp=NaN|",
    "client-1|timestamp=1,timestamp=2|",
    "client-1|__proto__=1,constructor=2|",
    "client-1|a=b=c=d|",
    "client-1|signmethod=hmacsha1",
    "client-1|\u0000|",
    "client&1|signmethod=hmacsha1|",
    "клиент|signmethod=hmacsha1|",
    `${"c".repeat(65_000)}|signmethod=hmacsha1|`,
    `client-1|${"k=v,".repeat(15_000)}|`,
    "__proto__",
    "pending-1",
    "$SYS"
  ])

const userNames = (dice: Dice, { deviceName, productKey }: Device): string =>
  dice.pick([
    `${deviceName}&${productKey}`,
    `${deviceName}&&${productKey}`,
    `&${deviceName}&${productKey}`,
    `${productKey}&${deviceName}`,
    `${deviceName}&`,
    `&${productKey}`,
    "&",
    "",
    deviceName,
    `${deviceName}&${productKey}\u0000`,
    `${deviceName} & ${productKey}`,
    `${deviceName.toUpperCase()}&${productKey}`,
    `__proto__&constructor`,
    `${"x".repeat(10_000)}&${productKey}`,
    `${deviceName}&${"x".repeat(10_000)}`,
    "&".repeat(10_000)
  ])

const passwords = (dice: Dice, right: Buffer): Buffer =>
  dice.pick([
    right,
    right,
    right.subarray(1),
    Buffer.concat([right, right]),
    Buffer.from(right.toString().toUpperCase()),
    Buffer.from("0".repeat(40)),
    Buffer.from("0".repeat(32)),
    Buffer.from("0".repeat(64)),
    Buffer.from(""),
    Buffer.from("x"),
    dice.bytes(20),
    dice.bytes(40),
    Buffer.alloc(65_535, "a")
  ])

const odd = <A>(dice: Dice, usual: A, unusual: () => A): A => dice.chance(0.5) ? usual : unusual()

/** The first bytes of a connection: a CONNECT with something wrong in it, and perhaps what follows at once. */
export const greeting = (dice: Dice, device: Device, victim: Device): Buffer => {
  const right = RawMqttSocket.connectPacket(device)
  const fields: Partial<IConnectPacket> = {
    clientId: odd(dice, right.clientId, () => clientIds(dice)),
    username: odd(dice, right.username!, () => userNames(dice, device)),
    password: odd(dice, right.password!, () => passwords(dice, right.password!)),
    keepalive: dice.pick([0, 1, 60, 65_535]),
    clean: dice.chance(0.7),
    ...dice.chance(0.2) && {
      will: {
        topic: topic(dice, device, victim),
        payload: payload(dice, "").subarray(0, 60_000),
        qos: dice.pick(qualities)
      }
    }
  }
  const valid = encode({ ...right, ...fields, clean: fields.clean === true || fields.clientId === "" })
  const connect = dice.chance(0.6) ? mutate(dice, valid) : valid
  return dice.chance(0.3) ? Buffer.concat([connect, ...conversation(dice, device, victim)]) : connect
}

/** The longest a remaining length may be. */
const maxLengthBytes = 4

/** Whether the first packet is all there, or can never be. */
export const hasFirstPacket = (bytes: Buffer): boolean => {
  let length = 0
  for (let i = 0; i < maxLengthBytes; i++) {
    const byte = bytes[1 + i]
    if (byte === undefined) return false
    length += (byte & 0x7f) * 128 ** i
    if (byte < 0x80) return bytes.length >= 2 + i + length
  }
  return true
}
