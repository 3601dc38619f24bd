/**
 * The JSON envelope of messages between devices and the cloud (alink-facts,
 * section 1).
 */
import { DeviceReply, type DownlinkMessage } from "@device-cloud/core"
import { Predicate } from "effect"

/** A message of a device. */
export interface AlinkRequest {
  /** As the device sent it; echoed with its type. */
  readonly id: string | number
  readonly params: unknown
  /** False: the device wants no reply. */
  readonly wantsReply: boolean
}

/** Stands for the id of a message that has none. */
const noId = "0"

/** Reads the payload, or answers the reply that says what is wrong with it. */
export const decode = (payload: Buffer): AlinkRequest | DeviceReply.DeviceReply => {
  const message = parseJson(payload)
  if (message === undefined) return DeviceReply.notJson
  if (!Predicate.isObject(message)) return DeviceReply.parameterError("expected a JSON object")
  const { id, params = {}, sys } = message as {
    readonly id?: unknown
    readonly params?: unknown
    readonly sys?: unknown
  }
  return {
    id: typeof id === "string" || typeof id === "number" ? id : noId,
    params,
    wantsReply: !(Predicate.hasProperty(sys, "ack") && sys.ack === 0)
  }
}

const parseJson = (payload: Buffer): unknown => {
  try {
    return JSON.parse(payload.toString())
  } catch {
    return undefined
  }
}

export const encodeReply = (id: string | number | undefined, method: string, reply: DeviceReply.DeviceReply): string =>
  JSON.stringify({
    code: reply.code,
    data: reply.data,
    id: id ?? noId,
    message: reply.message,
    method,
    version: "1.0"
  })

export const encodeRequest = ({ id, method, params }: DownlinkMessage): string =>
  JSON.stringify({ id, version: "1.0.0", method, params })
