/**
 * The messages of a device as MQTT carries them, seen from the device: the topics
 * and payloads of what it says, and what a message on a topic means to it
 * (docs/protocol/topics.md).
 */
import {
  crc16,
  methodPrefix,
  methodToTopic,
  type Owner,
  ownerOf,
  shadowTopic,
  userCallTopic,
  userTopicPrefix
} from "@device-cloud/alink"
import {
  DeviceReply,
  type DownlinkMessage,
  type Json,
  rawMethod,
  sessionErrorMethod,
  upgradeMethod,
  userMethod,
  userReplyMethod
} from "@device-cloud/core"
import { isUtf8 } from "node:buffer"
import type { DeviceMessage, DeviceNames } from "./DeviceLink.ts"

/** The method of a message that the cloud has sent to all devices of a product. */
export const broadcastMethod = "broadcast"

/** A message as it is published. */
export interface Outgoing {
  readonly topic: string
  readonly payload: string | Buffer
  /** What tells the reply from others; undefined: there is no reply. */
  readonly reply: string | undefined
}

type Fields = Readonly<Record<string, Json>>

const fieldsOf = (value: Json): Fields => typeof value === "object" && value !== null ? value as Fields : {}

/** Tells a reply from others: by its topic, and by its id if it has one. */
const replyKey = (topic: string, id: Json = ""): string => `${topic} ${String(id)}`

/** Returns what the device publishes. `id`: the id of the message, unless the form has none. */
export const outgoing = ({ from, method, params }: DeviceMessage, id: string): Outgoing => {
  const owner = from as Owner
  const own = `${from.productKey}/${from.deviceName}`
  const request = (topic: string, reply = `${topic}_reply`): Outgoing => ({
    topic,
    payload: JSON.stringify({ id, version: "1.0", method, params, sys: { ack: 1 } }),
    reply: replyKey(reply, id)
  })
  const notice = (topic: string, payload: string | Buffer): Outgoing => ({ topic, payload, reply: undefined })
  const topic = methodToTopic(methodPrefix(owner), method)
  switch (method) {
    case "thing.shadow":
      return {
        topic: `/shadow/update/${own}`,
        payload: JSON.stringify({ ...fieldsOf(params), clientToken: id }),
        reply: replyKey(shadowTopic(owner), id)
      }
    case "thing.ntp":
      return {
        topic: `/ext/ntp/${own}/request`,
        payload: JSON.stringify(params),
        reply: replyKey(`/ext/ntp/${own}/response`)
      }
    case "thing.ota.inform":
    case "thing.ota.progress":
      return notice(`/ota/device/${method.slice("thing.ota.".length)}/${own}`, JSON.stringify({ id, params }))
    case "thing.diag.post":
      return request(`${methodPrefix(owner)}_thing/diag/post`)
    case "thing.model.up_raw":
      return { topic, payload: Buffer.from(String(params), "hex"), reply: replyKey(`${topic}_reply`) }
    case "thing.model.down_raw_reply":
      return notice(topic, Buffer.from(String(params), "hex"))
    case userMethod:
      return notice(userTopicPrefix(owner) + String(fieldsOf(params)["topic"]), userBytes(params))
    case userReplyMethod: {
      const { id: call, topic } = fieldsOf(params)
      return notice(userCallTopic(owner, String(call), String(topic)), userBytes(params))
    }
  }
  if (method.startsWith("combine.")) return request(`/ext/session/${own}/combine/${method.slice("combine.".length)}`)
  return method.endsWith("_reply") ? notice(topic, JSON.stringify(params)) : request(topic)
}

const userBytes = (params: Json): Buffer => {
  const { encoding, payload } = fieldsOf(params)
  return Buffer.from(String(payload), encoding === "base64" ? "base64" : "utf8")
}

/** What a message on a topic means to the device. */
export type Arrival =
  | { readonly _tag: "Reply"; readonly key: string; readonly reply: DeviceReply.DeviceReply }
  | { readonly _tag: "Message"; readonly to: DeviceNames; readonly message: DownlinkMessage }

/** Returns what a message on a topic means to the device that is connected. */
export const arrival = (topic: string, payload: Buffer, device: DeviceNames): Arrival => {
  const broadcast = `/broadcast/${device.productKey}/`
  if (topic.startsWith(broadcast)) {
    return message(device, broadcastMethod, "0", userParams(topic.slice(broadcast.length), payload))
  }
  const owner = ownerOf(topic) ?? device as Owner
  const prefix = methodPrefix(owner)
  if (topic.startsWith(prefix)) return ofMethod(topic, topic.slice(prefix.length), payload, owner)
  const [, family, kind, id = ""] = topic.split("/")
  const userPrefix = userTopicPrefix(owner)
  if (topic.startsWith(userPrefix)) {
    return message(owner, userMethod, "0", userParams(topic.slice(userPrefix.length), payload))
  }
  if (family === "ext" && kind === "rrpc") {
    const call = message(owner, userMethod, id, userParams(topic.slice(topic.indexOf("/user/") + 6), payload))
    return { ...call, message: { ...call.message, synchronous: true } }
  }
  const fields = parse(payload)
  if (topic === shadowTopic(owner)) return ofShadow(topic, owner, fields)
  if (family === "ota" && kind === "device") {
    return message(owner, upgradeMethod, String(fields["id"]), fields["data"] ?? {})
  }
  if (family === "ext" && kind === "error") {
    const { id, ...params } = fields
    return message(owner, sessionErrorMethod, String(id), params)
  }
  // The reply to a question for the time has no envelope.
  return kind === "ntp"
    ? { _tag: "Reply", key: replyKey(topic), reply: DeviceReply.success(fields) }
    : { _tag: "Reply", key: replyKey(topic, fields["id"]), reply: replyOf(fields) }
}

const message = (
  to: DeviceNames,
  method: string,
  id: string,
  params: Json
): Arrival & { readonly _tag: "Message" } => ({
  _tag: "Message",
  to,
  message: { id, method, params }
})

const ofMethod = (topic: string, path: string, payload: Buffer, owner: Owner): Arrival => {
  if (path === "thing/model/down_raw") {
    return { _tag: "Message", to: owner, message: { id: "0", method: rawMethod, params: {}, bytes: payload } }
  }
  if (path === "thing/file/download_reply") return ofBlock(topic, payload)
  if (path === "thing/model/up_raw_reply") {
    const bytes = new Uint8Array(payload)
    const fields = parse(payload)
    const reply = "code" in fields ? replyOf(fields) : { ...DeviceReply.success({}), bytes }
    return { _tag: "Reply", key: replyKey(topic), reply }
  }
  const fields = parse(payload)
  if (path.endsWith("_reply")) return { _tag: "Reply", key: replyKey(topic, fields["id"]), reply: replyOf(fields) }
  const { id, method, params = {} } = fields
  const found = message(owner, String(method ?? path.replaceAll("/", ".")), String(id), params)
  return path.startsWith("rrpc/") ? { ...found, message: { ...found.message, synchronous: true } } : found
}

const ofShadow = (topic: string, owner: Owner, fields: Fields): Arrival => {
  const { clientToken, method, payload = {}, timestamp = 0, version = 0 } = fields
  const { content, metadata = {}, state = {}, status, ...rest } = fieldsOf(payload)
  if (method === "control") {
    return message(owner, "thing.shadow", String(version), { state, metadata, timestamp, version })
  }
  const { errorcode, errormessage } = fieldsOf(content ?? {})
  const reply = status === "success"
    ? DeviceReply.success("version" in rest ? { version: rest["version"]! } : { state, metadata, version })
    : DeviceReply.failure(Number(errorcode), String(errormessage))
  return { _tag: "Reply", key: replyKey(topic, clientToken), reply }
}

/** Reads a block of a file: a frame of JSON, bytes and their checksum. */
const ofBlock = (topic: string, frame: Buffer): Arrival => {
  const length = frame.readUInt16BE(0)
  const fields = parse(frame.subarray(2, 2 + length))
  const bytes = frame.subarray(2 + length, -2)
  const isWhole = crc16(bytes) === frame.readUInt16LE(frame.length - 2)
  const reply = isWhole ? { ...replyOf(fields), bytes } : DeviceReply.failure(500, "The checksum of the block is wrong")
  return { _tag: "Reply", key: replyKey(topic, fields["id"]), reply }
}

const replyOf = ({ code, data = {}, message }: Fields): DeviceReply.DeviceReply => ({
  // The reply to older devices that ask for an upgrade says 1000.
  code: code === "1000" ? 200 : Number(code),
  data,
  message: String(message)
})

/** The params of a message on a user topic. */
export const userParams = (topic: string, payload: Buffer) => {
  const encoding: BufferEncoding = isUtf8(payload) ? "utf8" : "base64"
  return { topic, payload: payload.toString(encoding), encoding }
}

/** The members of a JSON object; none: it is no JSON object. */
const parse = (payload: Buffer): Fields => {
  try {
    return fieldsOf(JSON.parse(payload.toString()))
  } catch {
    return {}
  }
}
