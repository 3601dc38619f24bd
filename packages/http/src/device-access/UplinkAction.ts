/**
 * The actions of the HTTP uplink: each stands for a message of the MQTT protocol
 * (docs/protocol/http-uplink.md).
 */
import { DeviceName, type InputIssue, ProductKey } from "@device-cloud/core"
import { Predicate, Result } from "effect"
import { Base64, Hex } from "effect/encoding"
import { type InvalidParameter, invalidParameter } from "../Failure.ts"
import type { UplinkQuery } from "./DeviceAccessApi.ts"

/** The message that an action stands for. */
export interface UplinkRequest {
  readonly method: string
  readonly params: unknown
  /** The sub-device that the message is about. */
  readonly subDevice?: { readonly productKey: ProductKey; readonly deviceName: DeviceName }
}

type Parsed = Result.Result<UplinkRequest, typeof InvalidParameter.Type>

const refuse = (...issues: ReadonlyArray<InputIssue>): Result.Result<never, typeof InvalidParameter.Type> =>
  Result.fail(invalidParameter(issues))

const refuseField = (field: string, message: string) => refuse({ path: [field], message })

/** A JSON body. A member that the device leaves out is empty. */
type Body = Readonly<Record<string, unknown>>

const messageParams = (body: Body): unknown => body["params"] ?? {}

const oneOf = (
  field: string,
  value: unknown,
  allowed: ReadonlyArray<string>
): Result.Result<string, typeof InvalidParameter.Type> =>
  typeof value === "string" && allowed.includes(value)
    ? Result.succeed(value)
    : refuseField(field, `Expected one of ${allowed.join(", ")}`)

const request = (method: string, params: unknown): Parsed => Result.succeed({ method, params })

/** The methods that `PostSysMsg` allows as `method` in its body. */
const systemMethods = [
  "thing.deviceinfo.update",
  "thing.deviceinfo.delete",
  "thing.config.get",
  "thing.log.post",
  "thing.bind.post"
]
const upgradeMethods = ["thing.ota.inform", "thing.ota.progress", "thing.ota.firmware.get"]

const topologyMethods: Readonly<Record<string, string>> = {
  add: "thing.topo.add",
  delete: "thing.topo.delete",
  get: "thing.topo.get",
  login: "combine.login",
  logout: "combine.logout",
  batch_login: "combine.batch_login",
  batch_logout: "combine.batch_logout"
}
const meshMethods = ["add", "delete", "get"]

const isHex = /^(?:[0-9a-f]{2})+$/i

/** The message of an action whose body is JSON. */
export const parse = (query: UplinkQuery, body: unknown): Parsed => {
  if (!Predicate.isObject(body)) return refuseField("body", "Expected a JSON object")
  const message = body as Body
  switch (query.action) {
    case "PostProperty":
      return request("thing.event.property.post", messageParams(message))
    case "PostEvent":
      return isSegment(query.event_id)
        ? request(`thing.event.${query.event_id}.post`, messageParams(message))
        : refuseField("event_id", "Expected the id of an event")
    case "PostServiceReply":
      return serviceReply(query.service_id, message)
    case "PostHex":
    case "PostSubHex":
      return hex(query, messageParams(message))
    case "PostModbus":
      return request("thing.modbus.post", message)
    case "PostModbusSub":
      return Result.map(subDeviceOf(messageParams(message)), (subDevice) => ({
        method: "thing.modbus.post",
        params: message,
        subDevice
      }))
    case "PostStarTopo":
    case "StarTopo":
      return Result.flatMap(
        oneOf("method", query.method, Object.keys(topologyMethods)),
        (method) => request(topologyMethods[method]!, messageParams(message))
      )
    case "PostMeshTopo":
      return Result.flatMap(
        oneOf("method", query.method, meshMethods),
        (method) => request(`thing.mesh.${method}`, messageParams(message))
      )
    case "PostShadow":
      return request("thing.shadow", message)
    case "PostOTA":
      return Result.flatMap(
        oneOf("body.method", message["method"], upgradeMethods),
        (method) => request(method, messageParams(message))
      )
    case "PostNTP":
      return request("thing.ntp", message)
    case "PostSysMsg":
      return Result.flatMap(
        oneOf("body.method", message["method"], systemMethods),
        (method) => request(method, messageParams(message))
      )
    case "PostRemoteDiagnosis":
      return request("thing.diag.post", messageParams(message))
  }
}

/** The message of an action whose body is bytes, as hex text. */
export const parseHex = (query: UplinkQuery, text: string): Parsed => hex(query, { data: text })

/** Whether a text can be one level of a topic. */
const isSegment = (text: string | undefined): text is string => text !== undefined && /^[^/.#+]{1,128}$/.test(text)

const serviceReply = (serviceId: string | undefined, message: Body): Parsed => {
  const path = serviceId === "property/set" ? "set" : serviceId
  if (!isSegment(path)) return refuseField("service_id", "Expected the id of a service")
  return request(path === "set" ? "thing.service.property.set_reply" : `thing.service.${path}_reply`, message)
}

const hex = ({ action }: UplinkQuery, params: unknown): Parsed => {
  const data = Predicate.hasProperty(params, "data") ? params.data : undefined
  if (typeof data !== "string" || !isHex.test(data.trim())) {
    return refuseField("params.data", "Expected bytes as hex text")
  }
  const said = { method: "thing.model.up_raw", params: data.trim().toLowerCase() }
  return action === "PostSubHex"
    ? Result.map(subDeviceOf(params), (subDevice) => ({ ...said, subDevice }))
    : Result.succeed(said)
}

const subDeviceOf = (
  params: unknown
): Result.Result<NonNullable<UplinkRequest["subDevice"]>, typeof InvalidParameter.Type> => {
  const { device_name, product_key } = (Predicate.isObject(params) ? params : {}) as Body
  if (typeof product_key !== "string") return refuseField("params.product_key", "Expected the sub-device's product key")
  if (typeof device_name !== "string") return refuseField("params.device_name", "Expected the sub-device's name")
  return Result.succeed({ productKey: ProductKey.make(product_key), deviceName: DeviceName.make(device_name) })
}

const hexLengths = { hmacsha1: 40, hmacsha256: 64 } as const

/** A signature in lower-case hex, from hex or from base64 of either alphabet. Empty: it is neither. */
export const signatureHex = (sign: string, method: keyof typeof hexLengths): string => {
  if (sign.length === hexLengths[method] && isHex.test(sign)) return sign.toLowerCase()
  // In a query, a plus that was not encoded stands for a space.
  const standard = sign.replaceAll(" ", "+").replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, "")
  const padded = standard.padEnd(Math.ceil(standard.length / 4) * 4, "=")
  return Result.match(Base64.decode(padded), { onFailure: () => "", onSuccess: Hex.encode })
}
