/**
 * The topics on which devices may send messages over HTTP, and what the bytes on
 * them say (docs/protocol/http-uplink.md#with-a-token).
 */
import {
  type DeviceMethod,
  type DeviceMethods,
  DeviceName,
  type Json,
  ProductKey,
  userMethod
} from "@device-cloud/core"
import { Predicate, Result } from "effect"
import { Base64, Hex } from "effect/encoding"
import { isName, messageContent } from "./UplinkAction.ts"

/** What a topic says of a message. */
export interface AlinkTopic {
  readonly productKey: ProductKey
  readonly deviceName: DeviceName
  readonly method: string
  readonly form: DeviceMethod.MessageForm
  /** Of a user topic: the levels after `user/`. */
  readonly userTopic: string
}

/** A message on a topic. */
export interface AlinkMessage {
  /** The id that the device chose; the reply repeats it with its type. */
  readonly id: string | number
  readonly params: unknown
}

/** The topics that the protocol gives to single methods, below product and device. */
const ownTopics: ReadonlyArray<readonly [topic: RegExp, method: string]> = [
  [/^\/shadow\/update\/([^/]+)\/([^/]+)$/, "thing.shadow"],
  [/^\/ext\/ntp\/([^/]+)\/([^/]+)\/request$/, "thing.ntp"],
  [/^\/ota\/device\/inform\/([^/]+)\/([^/]+)$/, "thing.ota.inform"],
  [/^\/ota\/device\/progress\/([^/]+)\/([^/]+)$/, "thing.ota.progress"],
  [/^\/sys\/([^/]+)\/([^/]+)\/_thing\/diag\/post$/, "thing.diag.post"],
  // A topic of a message has no wildcards and no NUL.
  [/^\/([^/]+)\/([^/]+)\/user\/([^+#\0]+)$/, userMethod]
]
const methodTopic = /^\/sys\/([^/]+)\/([^/]+)\/(thing\/.+)$/

/** Forms whose messages or replies are no JSON of a device. */
const notCarried: ReadonlySet<DeviceMethod.MessageForm> = new Set(["file", "user"])

/** Returns what a topic says; undefined: it carries nothing over HTTP, or names no device that could exist. */
export const parseTopic = (topic: string, methods: DeviceMethods["Service"]): AlinkTopic | undefined => {
  for (const [pattern, method] of ownTopics) {
    const [, productKey, deviceName, userTopic = ""] = pattern.exec(topic) ?? []
    if (productKey !== undefined) return found(productKey, deviceName!, method, methods, userTopic)
  }
  const [, productKey, deviceName, path] = methodTopic.exec(topic) ?? []
  if (productKey === undefined) return undefined
  const named = found(productKey, deviceName!, path!.replaceAll("/", "."), methods, "")
  return named === undefined || notCarried.has(named.form) ? undefined : named
}

const found = (
  productKey: string,
  deviceName: string,
  method: string,
  methods: DeviceMethods["Service"],
  userTopic: string
): AlinkTopic | undefined => {
  const declared = isName(productKey) && isName(deviceName) ? methods.find(method) : undefined
  return declared && {
    productKey: ProductKey.make(productKey),
    deviceName: DeviceName.make(deviceName),
    method,
    form: declared.form,
    userTopic
  }
}

/** Forms that get no reply. */
export const unanswered: ReadonlySet<DeviceMethod.MessageForm> = new Set(["answer", "notice", "user"])

const noId = "0"

/** Reads the bytes of a message. Fails if they are not JSON where that is expected. */
export const readMessage = (
  { form, userTopic }: AlinkTopic,
  bytes: Uint8Array
): Result.Result<AlinkMessage, string> => {
  if (form === "bytes") return Result.succeed({ id: noId, params: Hex.encode(bytes) })
  const text = utf8(bytes)
  if (form === "user") {
    const content = text === undefined
      ? { payload: Base64.encode(bytes), encoding: "base64" }
      : { payload: text, encoding: "utf8" }
    return Result.succeed({ id: noId, params: { topic: userTopic, ...content } })
  }
  const body = text === undefined ? undefined : parseJson(text)
  if (!Predicate.isObject(body)) return Result.fail("expected a JSON object")
  const { id } = body as Readonly<Record<string, Json>>
  return Result.succeed({
    id: typeof id === "string" || typeof id === "number" ? id : noId,
    params: messageContent(form, body as Readonly<Record<string, unknown>>)
  })
}

const utf8 = (bytes: Uint8Array): string | undefined => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
