/**
 * The payloads of messages between devices and the cloud (alink-facts, sections
 * 1, 3.5, 3.15, 3.16, 6.1).
 */
import { DeviceReply, type DownlinkMessage, type Json, type UserMessage } from "@device-cloud/core"
import { Predicate } from "effect"
import { isUtf8 } from "node:buffer"
import { crc16 } from "./Crc16.ts"
import type { Route } from "../topics/Topic.ts"

/** A message of a device. */
export interface AlinkRequest {
  /** As the device sent it; echoed with its type. */
  readonly id: string | number
  readonly params: unknown
  /** False: the device wants no reply. */
  readonly wantsReply: boolean
  /** A shadow message's own mark, echoed. */
  readonly clientToken?: Json
}

/** Stands for the id of a message that has none. */
const noId = "0"

/** What is replied to when the message itself cannot be read. */
export const unreadable: AlinkRequest = { id: noId, params: {}, wantsReply: true }

/** Reads the payload, or answers the reply that says what is wrong with it. */
export const decode = (
  { kind, userTopic = "" }: Route,
  payload: Buffer
): AlinkRequest | DeviceReply.DeviceReply => {
  if (kind === "user") {
    const encoding = isUtf8(payload) ? "utf8" : "base64"
    return { id: noId, params: { topic: userTopic, payload: payload.toString(encoding), encoding }, wantsReply: false }
  }
  if (kind === "raw") return { id: noId, params: payload.toString("hex"), wantsReply: true }
  const message = parseJson(kind === "file" ? withoutStrayCommas(payload) : payload.toString())
  if (message === undefined) return kind === "shadow" ? DeviceReply.failure(400, "Invalid JSON.") : DeviceReply.notJson
  if (!Predicate.isObject(message)) return DeviceReply.parameterError("expected a JSON object")
  const { clientToken, id, params = {}, sys } = message as {
    readonly clientToken?: Json
    readonly id?: unknown
    readonly params?: unknown
    readonly sys?: unknown
  }
  return {
    id: typeof id === "string" || Number.isFinite(id) ? id as string | number : noId,
    params: hasParams.has(kind) ? paramsOf(params) : message,
    wantsReply: kind !== "answer" && kind !== "notice" && !(Predicate.hasProperty(sys, "ack") && sys.ack === 0),
    ...typeof clientToken === "string" ? { clientToken } : {}
  }
}

/** The kinds of messages whose `params` say it all. */
const hasParams: ReadonlySet<Route["kind"]> = new Set(["request", "notice", "session", "file", "upgrade"])

/** The public C SDK writes one behind the last member of an object. */
const withoutStrayCommas = (payload: Buffer): string => payload.toString().replaceAll(/,\s*\}/g, "}")

/** Some devices send the empty object as text. */
const paramsOf = (params: unknown): unknown => params === "{}" ? {} : params

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** `at`: Unix milliseconds. */
export const encodeReply = (
  { kind, method }: Route,
  { clientToken, id }: AlinkRequest,
  reply: DeviceReply.DeviceReply,
  at: number
): string | Buffer => {
  if (kind === "shadow") return encodeShadowReply(reply, clientToken, at)
  if (kind === "file") return encodeBlock(id, reply)
  const { code, data, message } = reply
  // As the message that tells of an upgrade: SDKs read both alike.
  if (kind === "upgrade") return JSON.stringify({ code: code === 200 ? "1000" : String(code), id, message, data })
  return JSON.stringify({ code, data, id, message, method, version: "1.0" })
}

/** What a length of two bytes can say. */
const maxHeadBytes = 0xffff

/**
 * The length of the JSON in two bytes, the higher first; the JSON; the bytes of
 * the file; their CRC in two bytes, the lower first, as SDKs of devices read it.
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

export const encodeRequest = ({ id, method, params }: DownlinkMessage): string =>
  JSON.stringify({ id, version: "1.0.0", method, params })

/** Tells a device of a firmware: its SDKs expect a code that is text, and an id that is a number. */
export const encodeUpgrade = ({ id, params }: DownlinkMessage): string =>
  JSON.stringify({ code: "1000", id: Number(id), message: "success", data: params })

/** Tells a gateway what is wrong with a session of a sub-device. */
export const encodeSessionError = ({ id, params }: DownlinkMessage): string =>
  JSON.stringify({ id, ...params as Readonly<Record<string, Json>> })

/** The bytes of a message on a user topic, and what its topic ends with. */
export const encodeUserMessage = (
  { params }: DownlinkMessage
): { readonly topic: string; readonly payload: Buffer } => {
  const { encoding, payload, topic } = params as unknown as UserMessage
  return { topic, payload: Buffer.from(payload, encoding) }
}

/** Tells a device what is desired of it. */
export const encodeControl = ({ params }: DownlinkMessage): string => {
  const { metadata, state, timestamp, version } = params as Readonly<Record<string, Json>>
  return JSON.stringify({
    method: "control",
    payload: { status: "success", state, metadata },
    version,
    timestamp
  })
}
