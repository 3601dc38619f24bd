/**
 * Messages with which a device reports properties and events: one by one, in
 * batches, packed, and late (alink-facts, sections 3.1, 3.3, 3.6).
 */
import { Predicate } from "effect"
import { type DeviceIdentity, DeviceName } from "../device/Device.ts"
import { ProductKey } from "../product/Product.ts"
import { maxPropertyIdLength, type ShadowEntry } from "../shadow/Shadow.ts"
import type { Json } from "../kernel/Json.ts"
import { isWellFormed } from "../kernel/Text.ts"
import type { Misfit } from "../thing-model/DataType.ts"
import type { SubDeviceName } from "../gateway/Topology.ts"
import {
  type DeviceReply,
  failure,
  noTopology,
  parameterError,
  success,
  tooManyEvents,
  tooManyPacked,
  tooManyProperties,
  topicError
} from "./DeviceReply.ts"
import type { Dropped, Step } from "./DeviceState.ts"

/** Properties in one message. */
export const maxProperties = 200
/** Events in one message. */
const maxEvents = 200

type Members = Readonly<Record<string, Json>>

interface Occurrence {
  readonly eventId: string
  readonly value: Json
  readonly time: number
}

interface Reports {
  readonly properties: ReadonlyArray<readonly [id: string, entry: ShadowEntry]>
  readonly events: ReadonlyArray<Occurrence>
}

const isMembers = (value: unknown): value is Members => Predicate.isObject(value)

/** `__proto__` is not an identifier: assigning it would change an object's prototype. */
const isId = (id: string): boolean => id !== "__proto__"

const isEventId = (id: string): boolean => id.length <= maxPropertyIdLength && isId(id) && isWellFormed(id)

/** Unix milliseconds that a date can hold. */
const isTime = (time: unknown): time is number =>
  typeof time === "number" && Number.isInteger(time) && time >= 0 && time <= 8.64e15

/** An object is the wrapped form when it has `value`, perhaps a numeric `time`, and nothing else. */
const unwrap = (raw: Json, receivedAt: number): ShadowEntry => {
  if (typeof raw !== "object" || raw === null || !Object.hasOwn(raw, "value")) return { value: raw, time: receivedAt }
  const { time, value } = raw as { readonly value: Json; readonly time?: Json }
  const members = Object.keys(raw).length
  if (members === 1) return { value, time: receivedAt }
  return members === 2 && isTime(time) ? { value, time } : { value: raw, time: receivedAt }
}

/**
 * `thing.event.property.post`: an object from property to value, or to
 * `{value, time}` with `time` in Unix milliseconds; without time the value is
 * as old as the message.
 */
export const propertyPost = (params: unknown, receivedAt: number): Step | DeviceReply => {
  if (!isMembers(params)) return parameterError("params: expected an object from property to value")
  const ids = Object.keys(params)
  if (ids.length > maxProperties) return tooManyProperties
  const values = ids.filter(isId).map((id) => [id, unwrap(params[id]!, receivedAt)] as const)
  return (state) => success(state.report(values, receivedAt))
}

/** `thing.event.{event}.post`: the outputs, or `{value: outputs, time}`. */
export const eventPost = (eventId: string, params: unknown, receivedAt: number): Step | DeviceReply => {
  if (!isEventId(eventId)) return topicError
  if (!isMembers(params)) return parameterError("params: expected an object with the outputs of the event")
  const wrapped = unwrap(params, receivedAt)
  const { time, value } = isMembers(wrapped.value) ? wrapped : { value: params, time: receivedAt }
  return (state) => replyTo(state.occur(eventId, value, time, receivedAt))
}

const replyTo = (misfit: Misfit | undefined): DeviceReply =>
  misfit === undefined ? success({}) : failure(misfit.code, misfit.message)

const record = (reports: Reports, receivedAt: number): Step | DeviceReply => {
  const { events, properties } = reports
  if (new Set(properties.map(([id]) => id)).size > maxProperties) return tooManyProperties
  if (events.length > maxEvents) return tooManyEvents
  return (state) => {
    const dropped: Record<string, string> = {}
    if (properties.length > 0) Object.assign(dropped, state.report(properties, receivedAt))
    for (const { eventId, time, value } of events) {
      const misfit = state.occur(eventId, value, time, receivedAt)
      if (misfit !== undefined) dropped[eventId] = misfit.message
    }
    return success(dropped as Dropped)
  }
}

/** The entries of `{id: one}` or `{id: [several]}`; undefined: it is something else. */
const entriesOf = (value: Json | undefined, receivedAt: number) => {
  if (value === undefined) return []
  if (!isMembers(value)) return undefined
  return Object.entries(value).filter(([id]) => isId(id)).flatMap(([id, listed]) =>
    (Array.isArray(listed) ? listed as ReadonlyArray<Json> : [listed]).map((one) =>
      [id, unwrap(one, receivedAt)] as const
    )
  )
}

const reportsOf = (params: Members, receivedAt: number): Reports | DeviceReply => {
  const properties = entriesOf(params["properties"], receivedAt)
  if (properties === undefined) return parameterError("properties: expected an object from property to values")
  const events = entriesOf(params["events"], receivedAt)
  if (events === undefined || events.some(([id, { value }]) => !isEventId(id) || !isMembers(value))) {
    return parameterError("events: expected an object from event to {value, time}")
  }
  return { properties, events: events.map(([eventId, { time, value }]) => ({ eventId, time, value })) }
}

/** `thing.event.property.batch.post`: several values of each property and several occurrences of each event. */
export const batchPost = (params: unknown, receivedAt: number): Step | DeviceReply => {
  if (!isMembers(params)) return parameterError("params: expected an object with properties and events")
  const reports = reportsOf(params, receivedAt)
  return "code" in reports ? reports : record(reports, receivedAt)
}

/** What a message makes of the state of one device. */
export interface DeviceChange {
  readonly device: DeviceIdentity
  readonly step: Step
}

/** The sub-device of this name, if it belongs to the gateway that speaks. */
export type FindSubDevice = (speaker: DeviceIdentity, name: SubDeviceName) => DeviceIdentity | undefined

export const packMethod = "thing.event.property.pack.post"
export const historyMethod = "thing.event.property.history.post"

/** Undefined: it names none. */
const nameIn = (identity: Json | undefined): SubDeviceName | undefined => {
  if (!isMembers(identity)) return undefined
  const { deviceName, productKey } = identity
  if (typeof productKey !== "string" || typeof deviceName !== "string") return undefined
  if (!isWellFormed(productKey) || !isWellFormed(deviceName)) return undefined
  return { productKey: ProductKey.make(productKey), deviceName: DeviceName.make(deviceName) }
}

/** The devices that a message names beside the one that says it. */
export const namesIn = (method: string, params: unknown): ReadonlyArray<SubDeviceName> => {
  const items = method === packMethod && isMembers(params) ? params["subDevices"] : params
  if ((method !== packMethod && method !== historyMethod) || !Array.isArray(items)) return []
  return (items as ReadonlyArray<Json>).flatMap((item) =>
    (isMembers(item) ? nameIn(item["identity"]) : undefined) ?? []
  )
}

/** The device that an item of a message is about, or why there is none. */
const deviceOf = (
  speaker: DeviceIdentity,
  identity: Json | undefined,
  subDevices: FindSubDevice
): DeviceIdentity | DeviceReply => {
  const name = nameIn(identity)
  if (name === undefined) return parameterError("identity: expected an object with productKey and deviceName")
  if (name.productKey === speaker.productKey && name.deviceName === speaker.deviceName) return speaker
  return subDevices(speaker, name) ?? noTopology
}

/** Sub-devices in one message. */
const maxPacked = 20

/** `thing.event.property.pack.post`: a gateway's own values and events with those of its sub-devices. */
export const packPost = (
  device: DeviceIdentity,
  params: unknown,
  receivedAt: number,
  subDevices: FindSubDevice
): ReadonlyArray<DeviceChange> | DeviceReply => {
  if (!isMembers(params)) return parameterError("params: expected an object with properties and events")
  const { subDevices: packed = [] } = params
  if (!Array.isArray(packed)) return parameterError("subDevices: expected an array")
  if (packed.length > maxPacked) return tooManyPacked
  const own = batchPost(params, receivedAt)
  if ("code" in own) return own
  const changes: Array<DeviceChange> = [{ device, step: own }]
  for (const item of packed as ReadonlyArray<Json>) {
    if (!isMembers(item)) return parameterError("subDevices: expected objects with identity, properties and events")
    const subDevice = deviceOf(device, item["identity"], subDevices)
    if ("code" in subDevice) return subDevice
    const step = batchPost(item, receivedAt)
    if ("code" in step) return step
    changes.push({ device: subDevice, step })
  }
  return changes
}

/** `thing.event.property.history.post`: what was measured while there was no connection, by a device or a gateway's sub-devices. */
export const historyPost = (
  speaker: DeviceIdentity,
  params: unknown,
  receivedAt: number,
  subDevices: FindSubDevice
): ReadonlyArray<DeviceChange> | DeviceReply => {
  if (!Array.isArray(params)) return failure(6301, "params: expected an array")
  const byDevice = new Map<
    DeviceIdentity,
    { properties: Array<Reports["properties"][number]>; events: Array<Occurrence> }
  >()
  for (const item of params as ReadonlyArray<Json>) {
    if (!isMembers(item)) return parameterError("params: expected an array of {identity, properties, events}")
    const device = item["identity"] === undefined ? speaker : deviceOf(speaker, item["identity"], subDevices)
    if ("code" in device) return device
    const all = byDevice.get(device) ?? { properties: [], events: [] }
    byDevice.set(device, all)
    for (const part of membersOf(item["properties"])) {
      const reports = reportsOf({ properties: part }, receivedAt)
      if ("code" in reports) return reports
      all.properties.push(...reports.properties)
    }
    for (const part of membersOf(item["events"])) {
      const reports = reportsOf({ events: part }, receivedAt)
      if ("code" in reports) return reports
      all.events.push(...reports.events)
    }
  }
  const changes: Array<DeviceChange> = []
  for (const [device, reports] of byDevice) {
    const step = record(reports, receivedAt)
    if ("code" in step) return step
    changes.push({ device, step })
  }
  return changes
}

/** An array, one item, or nothing. */
const membersOf = (value: Json | undefined): ReadonlyArray<Json> =>
  value === undefined ? [] : Array.isArray(value) ? value as ReadonlyArray<Json> : [value]

/** Log entries in one message. */
const maxLogs = 40

/** `thing.log.post`: what the device writes into its log. */
export const logPost = (params: unknown, receivedAt: number): Step | DeviceReply => {
  if (!Array.isArray(params) || params.length === 0 || params.length > maxLogs || !params.every(isMembers)) {
    return parameterError(`params: expected an array of 1 to ${maxLogs} log entries`)
  }
  return (state) => replyTo(state.record("log", params as ReadonlyArray<Json>, receivedAt, receivedAt))
}

/** `thing.diag.post`: how well the device is connected. */
export const diagnosisPost = (params: unknown, receivedAt: number): Step | DeviceReply => {
  if (!isMembers(params) || params["p"] === undefined) {
    return parameterError("params: expected an object with p and model")
  }
  return (state) => replyTo(state.record("diag", params, receivedAt, receivedAt))
}

/** `thing.model.up_raw`: bytes that only the product understands, as hex text. */
export const rawPost = (params: unknown, receivedAt: number): Step | DeviceReply => {
  if (typeof params !== "string") return parameterError("expected bytes")
  return (state) => replyTo(state.record("raw", params, receivedAt, receivedAt))
}

/** What the device says on a topic that it and the application agree on. */
export const userPost = (params: unknown, receivedAt: number): Step => (state) =>
  replyTo(state.record("user", params as Json, receivedAt, receivedAt))

/** What a device says on behalf of what it is wired to: the whole message is kept. */
export const modbusPost = (params: unknown, receivedAt: number): Step | DeviceReply => {
  if (!isMembers(params)) return parameterError("expected an object with id, version, method and params")
  return (state) => replyTo(state.record("modbus", params, receivedAt, receivedAt))
}
