/**
 * The payloads of messages between devices and the cloud (docs/protocol/).
 */
import { DeviceReply, type DownlinkMessage, type Json, type UserMessage } from "@device-cloud/core"
import { Predicate } from "effect"
import { isUtf8 } from "node:buffer"
import type { Form, Route } from "./TopicRouter.ts"
import { crc16 } from "./Crc16.ts"

/** A message of a device. */
export interface AlinkRequest {
  /** The id that the device chose; the reply repeats it with its type. */
  readonly id: string | number
  /** What the device says, not checked. */
  readonly params: unknown
  /** Whether the device wants a reply. */
  readonly wantsReply: boolean
  /** The mark of a shadow message; the reply repeats it. */
  readonly clientToken?: Json
}

/** The id of a reply to a message without one. */
const noId = "0"

/** The request of a message that cannot be read. */
export const unreadable: AlinkRequest = { id: noId, params: {}, wantsReply: true }

/** Reads a payload; returns the reply to the device if it cannot be read. */
export const decode = (
  { form, repliesTo, replyTopic, userTopic = "" }: Route,
  payload: Buffer
): AlinkRequest | DeviceReply.DeviceReply => {
  if (repliesTo !== undefined) {
    // What is kept as text has no NUL.
    const encoding = isUtf8(payload) && !payload.includes(0) ? "utf8" : "base64"
    return { id: noId, params: { id: repliesTo, payload: payload.toString(encoding), encoding }, wantsReply: false }
  }
  if (form === "user") {
    const encoding = isUtf8(payload) ? "utf8" : "base64"
    return { id: noId, params: { topic: userTopic, payload: payload.toString(encoding), encoding }, wantsReply: false }
  }
  if (form === "bytes") return { id: noId, params: payload.toString("hex"), wantsReply: replyTopic !== "" }
  const message = (form === "file" ? parseForgiving : parseJson)(payload.toString())
  if (message === undefined) return form === "shadow" ? DeviceReply.failure(400, "Invalid JSON.") : DeviceReply.notJson
  if (!Predicate.isObject(message)) return DeviceReply.parameterError("expected a JSON object")
  const { clientToken, id, params = form === "open" ? message : {}, sys } = message as {
    readonly clientToken?: Json
    readonly id?: unknown
    readonly params?: unknown
    readonly sys?: unknown
  }
  const request = new JsonRequest(
    typeof id === "string" || Number.isFinite(id) ? id as string | number : noId,
    hasParams.has(form) ? paramsOf(params) : message,
    form !== "answer" && form !== "notice" && !(Predicate.hasProperty(sys, "ack") && sys.ack === 0)
  )
  return typeof clientToken === "string" ? { ...request, clientToken } : request
}

// A class and no literal: V8 allocates literals that wait for a commit as old objects (docs/decisions/0125-pauses.md).
class JsonRequest implements AlinkRequest {
  readonly id: string | number
  readonly params: unknown
  readonly wantsReply: boolean

  constructor(id: string | number, params: unknown, wantsReply: boolean) {
    this.id = id
    this.params = params
    this.wantsReply = wantsReply
  }
}

/** Forms whose request is in `params`; the whole message is the request of the others. */
const hasParams: ReadonlySet<Form> = new Set(["request", "open", "notice", "session", "file", "upgrade"])

/** Some devices send the empty object as a string. */
const paramsOf = (params: unknown): unknown => params === "{}" ? {} : params

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The public C SDK writes a comma after the last member of an object. */
const parseForgiving = (text: string): unknown => {
  const message = parseJson(text)
  return message === undefined ? parseJson(text.replaceAll(/,\s*\}/g, "}")) : message
}

/** A payload, or the parts of one: large parts that many devices get are never copied. */
export type Payload = string | Buffer | ReadonlyArray<Uint8Array>

/** Returns the bytes of a payload. */
export const bytesOf = (payload: Payload): Buffer =>
  typeof payload === "string"
    ? Buffer.from(payload)
    : Buffer.isBuffer(payload)
    ? payload
    : Buffer.concat(payload as ReadonlyArray<Uint8Array>)

/** Returns the payload of a reply. `at`: Unix milliseconds. */
export const encodeReply = (
  { form, method }: Route,
  { clientToken, id }: AlinkRequest,
  reply: DeviceReply.DeviceReply,
  at: number
): Payload => {
  if (form === "shadow") return encodeShadowReply(reply, clientToken, at)
  if (form === "file") return encodeBlock(id, reply)
  // Unless the codec of the product describes the reply, it is JSON.
  if (form === "bytes" && reply.bytes !== undefined) return Buffer.from(reply.bytes)
  const { code, data, message } = reply
  // SDKs read this reply and the notice of an upgrade with the same code.
  if (form === "upgrade") return JSON.stringify({ code: code === 200 ? "1000" : String(code), id, message, data })
  if (reply.encodedData !== undefined) return spliceReply(reply.encodedData, { code, id, message, method })
  return JSON.stringify({ code, data, id, message, method, version: "1.0" })
}

/** Returns the payload of a reply around data that is encoded already. */
const spliceReply = (
  data: Uint8Array,
  { code, ...rest }: Readonly<Record<string, Json>>
): ReadonlyArray<Uint8Array> => {
  const end = JSON.stringify({ ...rest, version: "1.0" })
  return [Buffer.from(`{"code":${code},"data":`), data, Buffer.from(`,${end.slice(1)}`)]
}

/** The largest length that two bytes hold. */
const maxHeadBytes = 0xffff

/**
 * Returns a block of a file: the length of the JSON as a big-endian 16-bit number,
 * the JSON, the bytes of the file, and their CRC as a little-endian 16-bit number.
 */
const encodeBlock = (
  id: AlinkRequest["id"],
  { bytes = new Uint8Array(), code, data, message }: DeviceReply.DeviceReply
): Buffer => {
  const head = Buffer.from(JSON.stringify({ id, code, message, data }))
  if (head.length > maxHeadBytes) return encodeBlock(noId, { bytes, code, data, message })
  const frame = Buffer.allocUnsafe(2 + head.length + bytes.length + 2)
  frame.writeUInt16BE(head.length, 0)
  frame.set(head, 2)
  frame.set(bytes, 2 + head.length)
  frame.writeUInt16LE(crc16(bytes), frame.length - 2)
  return frame
}

const encodeShadowReply = (
  { code, data, message }: DeviceReply.DeviceReply,
  clientToken: Json | undefined,
  at: number
) => {
  const { metadata, state, version } = data as {
    readonly metadata?: Json
    readonly state?: Json
    readonly version?: Json
  }
  const payload = code === 200
    ? { status: "success", ...state === undefined ? { version } : { state, metadata } }
    : { status: "error", content: { errorcode: String(code), errormessage: message } }
  return JSON.stringify({
    method: "reply",
    payload,
    ...state === undefined ? {} : { version },
    timestamp: Math.floor(at / 1000),
    ...clientToken === undefined ? {} : { clientToken }
  })
}

/** Returns the payload of a request of the cloud. */
export const encodeRequest = ({ id, method, params }: DownlinkMessage): string =>
  JSON.stringify({ id, version: "1.0.0", method, params })

/** Returns the notice of an upgrade. SDKs expect the code as a string and the id as a number. */
export const encodeUpgrade = ({ id, params }: DownlinkMessage): string =>
  JSON.stringify({ code: "1000", id: Number(id), message: "success", data: params })

/** Returns the notice to a gateway that something is wrong with the session of a sub-device. */
export const encodeSessionError = ({ id, params }: DownlinkMessage): string =>
  JSON.stringify({ id, ...params as Readonly<Record<string, Json>> })

/** Returns the bytes of a message on a user topic, and the levels of its topic after `user/`. */
export const encodeUserMessage = (
  { params }: DownlinkMessage
): { readonly topic: string; readonly payload: Buffer } => {
  const { encoding, payload, topic } = params as unknown as UserMessage
  return { topic, payload: Buffer.from(payload, encoding) }
}

/** Returns the shadow message that tells a device its desired values. */
export const encodeControl = ({ params }: DownlinkMessage): string => {
  const { metadata, state, timestamp, version } = params as Readonly<Record<string, Json>>
  return JSON.stringify({
    method: "control",
    payload: { status: "success", state, metadata },
    version,
    timestamp
  })
}
