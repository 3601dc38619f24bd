/**
 * The actions of the HTTP uplink: each stands for a message of the MQTT protocol
 * (docs/protocol/http-uplink.md). Device methods declare the actions that carry
 * them. Here are the actions whose requests have a form of their own.
 */
import { type DeviceMethod, DeviceMethods, DeviceName, ProductKey, Text } from "@device-cloud/core"
import { Effect, Predicate, Result, Schema } from "effect"
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

/** Reads the bodies of one action. */
export interface UplinkAction {
  /** Reads a JSON body. */
  readonly json: (body: unknown, query: UplinkQuery) => Parsed
  /** Reads a body of bytes, given as hex text. Absent: the action takes JSON only. */
  readonly hex?: (text: string) => Parsed
}

/** Finds an action. Fails with the known ones if there is none of this name. */
export type FindAction = (action: string) => Result.Result<UplinkAction, typeof InvalidParameter.Type>

/** Finds the actions of this file and those of the registered device methods. */
export const makeFind: Effect.Effect<FindAction, never, DeviceMethods> = Effect.map(
  DeviceMethods,
  (methods) => (action) => {
    const found = ownActions.get(action) ?? declared(action, methods)
    if (found !== undefined) return Result.succeed(found)
    const known = new Set([...ownActions.keys(), ...methods.actions()])
    return refuseField("action", `Expected one of ${[...known].sort().join(", ")}`)
  }
)

/** Methods that bodies of these actions need not name, whatever else an application declares with the action. */
const usualMethods: ReadonlyMap<string, string> = new Map([
  ["PostProperty", "thing.event.property.post"],
  ["PostHex", "thing.model.up_raw"],
  ["PostShadow", "thing.shadow"],
  ["PostNTP", "thing.ntp"],
  ["PostRemoteDiagnosis", "thing.diag.post"]
])

/** The action that methods declare. If there are several, `method` in the body names one. */
const declared = (action: string, methods: DeviceMethods["Service"]): UplinkAction | undefined => {
  const carried = methods.ofAction(action)
  if (carried.length === 0) return undefined
  const usual = carried.length === 1 ? carried[0] : carried.find(({ name }) => name === usualMethods.get(action))
  const byDefault = usual === undefined || usual.name.includes("*") ? undefined : actionOf(usual.name, usual.form)
  if (carried.length === 1 && byDefault !== undefined) return byDefault
  const named = json((body, query) => {
    const name = body["method"]
    const method = typeof name === "string" ? methods.find(name) : undefined
    if (method?.action === action) return actionOf(name as string, method.form).json(body, query)
    return byDefault?.json(body, query) ??
      refuseField("body.method", `Expected one of ${carried.map(({ name }) => name).join(", ")}`)
  })
  return byDefault?.hex === undefined ? named : { ...named, hex: byDefault.hex }
}

/** The action of one method. */
const actionOf = (method: string, form: DeviceMethod.MessageForm): UplinkAction =>
  form === "bytes" ? bytes(method) : json((body) => request(method, messageContent(form, body)))

/** A JSON body. A member that the device leaves out is empty. */
type Body = Readonly<Record<string, unknown>>

const json = (read: (body: Body, query: UplinkQuery) => Parsed): UplinkAction => ({
  json: (body, query) =>
    Predicate.isObject(body) ? read(body as Body, query) : refuseField("body", "Expected a JSON object")
})

/** Messages that carry bytes, which a JSON body holds as hex text in `params.data`. */
const bytes = (
  method: string,
  read: (method: string, data: string, params: unknown) => Parsed = request
): UplinkAction => {
  const readParams = (params: unknown): Parsed => {
    const data = Predicate.hasProperty(params, "data") ? params.data : undefined
    return typeof data === "string" && isBytes.test(data.trim())
      ? read(method, data.trim().toLowerCase(), params)
      : refuseField("params.data", "Expected bytes as hex text")
  }
  return { ...json((body) => readParams(messageParams(body))), hex: (data) => readParams({ data }) }
}

const request = (method: string, params: unknown): Parsed => Result.succeed({ method, params })

/** Accepts product keys and device names that the store could hold. */
export const isName = Schema.is(Text(128))

/** A message about the sub-device that `named` names. */
const subDeviceRequest = (method: string, params: unknown, named: unknown): Parsed => {
  const { device_name, product_key } = (Predicate.isObject(named) ? named : {}) as Body
  if (!isName(product_key)) return refuseField("params.product_key", "Expected the sub-device's product key")
  if (!isName(device_name)) return refuseField("params.device_name", "Expected the sub-device's name")
  const subDevice = { productKey: ProductKey.make(product_key), deviceName: DeviceName.make(device_name) }
  return Result.succeed({ method, params, subDevice })
}

/** Some devices send the empty object as text. */
const messageParams = ({ params }: Body): unknown => params === "{}" ? {} : params ?? {}

/** Forms of messages that have no `params`: the whole body counts. */
const wholeForms: ReadonlySet<DeviceMethod.MessageForm> = new Set(["answer", "shadow", "time"])

/** The part of a message that its method reads. */
export const messageContent = (form: DeviceMethod.MessageForm, body: Body): unknown => {
  if (form === "open") return body["params"] ?? body
  return wholeForms.has(form) ? (form === "time" ? { ...Object(body["params"]), ...body } : body) : messageParams(body)
}

const refuseField = (field: string, message: string): Result.Result<never, typeof InvalidParameter.Type> =>
  Result.fail(invalidParameter([{ path: [field], message }]))

/** As on its topic, a message of bytes may have none. */
const isBytes = /^(?:[0-9a-f]{2})*$/i

const isHex = /^(?:[0-9a-f]{2})+$/i

/** Whether a text can be one level of a topic. */
const isSegment = (text: string | undefined): text is string => text !== undefined && /^[^/.#+]{1,128}$/.test(text)

const serviceReply = (body: Body, serviceId: string | undefined): Parsed => {
  const path = serviceId === "property/set" ? "set" : serviceId
  if (!isSegment(path)) return refuseField("service_id", "Expected the id of a service")
  return request(path === "set" ? "thing.service.property.set_reply" : `thing.service.${path}_reply`, body)
}

/** An action whose query names the method. */
const byQuery = (methods: Readonly<Record<string, string>>): UplinkAction =>
  json((body, { method = "" }) =>
    Object.hasOwn(methods, method)
      ? request(methods[method]!, messageParams(body))
      : refuseField("method", `Expected one of ${Object.keys(methods).join(", ")}`)
  )

const topology = byQuery({
  add: "thing.topo.add",
  delete: "thing.topo.delete",
  get: "thing.topo.get",
  login: "combine.login",
  logout: "combine.logout",
  batch_login: "combine.batch_login",
  batch_logout: "combine.batch_logout"
})

const ownActions: ReadonlyMap<string, UplinkAction> = new Map([
  [
    "PostEvent",
    json((body, { event_id }) =>
      isSegment(event_id)
        ? request(`thing.event.${event_id}.post`, messageParams(body))
        : refuseField("event_id", "Expected the id of an event")
    )
  ],
  ["PostServiceReply", json((body, { service_id }) => serviceReply(body, service_id))],
  ["PostSubHex", bytes("thing.model.up_raw", subDeviceRequest)],
  // The whole message is kept.
  ["PostModbus", json((body) => request("thing.modbus.post", body))],
  ["PostModbusSub", json((body) => subDeviceRequest("thing.modbus.post", body, messageParams(body)))],
  ["PostStarTopo", topology],
  ["StarTopo", topology],
  ["PostMeshTopo", byQuery({ add: "thing.mesh.add", delete: "thing.mesh.delete", get: "thing.mesh.get" })]
])

const hexLengths = { hmacsha1: 40, hmacsha256: 64 } as const

/** A signature in lower-case hex, from hex or from base64 of either alphabet. Empty: it is neither. */
export const signatureHex = (sign: string, method: keyof typeof hexLengths): string => {
  // Base64 is shorter. What anybody sends is not searched before its length is known.
  if (sign.length > hexLengths.hmacsha256) return ""
  if (sign.length === hexLengths[method] && isHex.test(sign)) return sign.toLowerCase()
  // In a query, a plus that was not encoded stands for a space.
  const standard = sign.replaceAll(" ", "+").replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, "")
  const padded = standard.padEnd(Math.ceil(standard.length / 4) * 4, "=")
  return Result.match(Base64.decode(padded), { onFailure: () => "", onSuccess: Hex.encode })
}
