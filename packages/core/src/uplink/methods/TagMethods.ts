/**
 * The methods with which a device sets, removes and reads its tags
 * (docs/protocol/reports.md).
 */
import { Effect, Predicate, Result } from "effect"
import { maxTags } from "../../device/Device.ts"
import { DeviceStore } from "../../device/DeviceStore.ts"
import { isWellFormed } from "../../kernel/Text.ts"
import * as DeviceMethod from "../DeviceMethod.ts"
import { deviceNotFound, type DeviceReply, fieldError, parameterError, success } from "../DeviceReply.ts"

/** Tags in one message. */
const maxTagsInMessage = 200
const tagKey = /^[A-Za-z_][A-Za-z0-9_]{0,99}$/
/** UTF-16 code units. */
const maxTagLength = 128

type Attributes = ReadonlyArray<Readonly<Record<string, unknown>>>

const attributes = (params: unknown): Attributes | undefined =>
  Array.isArray(params) && params.length > 0 && params.length <= maxTagsInMessage && params.every(Predicate.isObject)
    ? params as Attributes
    : undefined

const decodeTags = (params: unknown): Result.Result<Readonly<Record<string, string>>, DeviceReply> => {
  const items = attributes(params)
  if (items === undefined) {
    return Result.fail(fieldError("params", `expected an array of 1 to ${maxTagsInMessage} {attrKey, attrValue}`))
  }
  const tags: Array<[string, string]> = []
  for (const { attrKey, attrValue } of items) {
    if (typeof attrKey !== "string" || !tagKey.test(attrKey)) {
      return Result.fail(fieldError("attrKey", "expected 1 to 100 letters, digits and _, no digit first"))
    }
    if (typeof attrValue !== "string" || attrValue.length > maxTagLength || !isWellFormed(attrValue)) {
      return Result.fail(fieldError("attrValue", `expected text of at most ${maxTagLength} characters`))
    }
    tags.push([attrKey, attrValue])
  }
  return Result.succeed(Object.fromEntries(tags))
}

const isStorableText = (value: unknown): value is string => typeof value === "string" && isWellFormed(value)

const decodeKeys = (params: unknown): Result.Result<ReadonlyArray<string>, DeviceReply> => {
  const keys = attributes(params)?.map(({ attrKey }) => attrKey)
  return keys === undefined || !keys.every(isStorableText)
    ? Result.fail(fieldError("params", `expected an array of 1 to ${maxTagsInMessage} {attrKey}`))
    : Result.succeed(keys)
}

/** Reads the keys of the wanted tags; none: all tags. */
const decodeWanted = (params: unknown): Result.Result<ReadonlySet<string> | undefined, DeviceReply> => {
  const keys = Predicate.hasProperty(params, "attrKeys") ? params.attrKeys : undefined
  if (keys === undefined || keys === null) return Result.succeed(undefined)
  return Array.isArray(keys) && keys.length <= maxTagsInMessage && keys.every(isStorableText)
    ? Result.succeed(keys.length === 0 ? undefined : new Set(keys))
    : Result.fail(fieldError("attrKeys", `expected an array of at most ${maxTagsInMessage} keys`))
}

const replyTo = (outcome: Readonly<Record<string, string>> | "full" | "no-device"): DeviceReply => {
  if (outcome === "no-device") return deviceNotFound
  return outcome === "full" ? parameterError(`expected at most ${maxTags} tags on a device`) : success({})
}

const change = (
  deviceId: Parameters<DeviceStore["Service"]["changeTags"]>[0],
  tags: Parameters<DeviceStore["Service"]["changeTags"]>[1]
) => DeviceStore.use((devices) => devices.changeTags(deviceId, tags))

export const methods = [
  DeviceMethod.request({
    name: "thing.deviceinfo.update",
    action: "PostSysMsg",
    decode: ({ params }) => decodeTags(params),
    handle: (set, { device }) => Effect.map(change(device.deviceId, { set, remove: [] }), replyTo)
  }),
  DeviceMethod.request({
    name: "thing.deviceinfo.delete",
    action: "PostSysMsg",
    decode: ({ params }) => decodeKeys(params),
    handle: (remove, { device }) => Effect.map(change(device.deviceId, { set: {}, remove }), replyTo)
  }),
  DeviceMethod.request({
    name: "thing.deviceinfo.get",
    decode: ({ params }) => decodeWanted(params),
    handle: (wanted, { device }) =>
      Effect.map(change(device.deviceId, { set: {}, remove: [] }), (tags) =>
        typeof tags === "string"
          ? replyTo(tags)
          : success(
            Object.entries(tags).flatMap(([attrKey, attrValue]) =>
              wanted === undefined || wanted.has(attrKey) ? [{ attrKey, attrValue }] : []
            )
          ))
  })
]
