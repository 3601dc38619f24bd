/**
 * The methods with which a device reports properties and events, one by one or
 * in batches (docs/protocol/reports.md).
 */
import { Predicate, Result } from "effect"
import type { InputIssue } from "../../kernel/InvalidInput.ts"
import type { Json } from "../../kernel/Json.ts"
import { aheadRemark, isAhead } from "../../kernel/DeviceTime.ts"
import { isWellFormed } from "../../kernel/Text.ts"
import { maxPropertyIdLength, type ShadowEntry } from "../../shadow/Shadow.ts"
import type { Misfit } from "../../thing-model/DataType.ts"
import * as DeviceMethod from "../DeviceMethod.ts"
import {
  type DeviceReply,
  failure,
  fieldError,
  success,
  tooManyEvents,
  tooManyProperties,
  topicError
} from "../DeviceReply.ts"
import type { DeviceState, Remarks } from "../DeviceState.ts"
import * as ValueCount from "./ValueCount.ts"

/** Properties in one message. */
const maxProperties = 200
/** Events in one message. */
const maxEvents = 200

export type Members = Readonly<Record<string, Json>>

export const isMembers = (value: unknown): value is Members => Predicate.isObject(value)

/** One occurrence of an event. */
interface Occurrence {
  readonly eventId: string
  readonly value: Json
  readonly time: number
}

/** The values and events of a message. */
export interface Reports {
  readonly properties: ReadonlyArray<readonly [id: string, entry: ShadowEntry]>
  readonly events: ReadonlyArray<Occurrence>
}

type Read<A> = Result.Result<A, DeviceReply>

/** `__proto__` is not an identifier: assigning it would change an object's prototype. */
const isId = (id: string): boolean => id !== "__proto__"

const isEventId = (id: string): boolean => id.length <= maxPropertyIdLength && isId(id) && isWellFormed(id)

/** Returns whether the value is a time in Unix milliseconds that a date can hold. */
const isTime = (time: unknown): time is number =>
  typeof time === "number" && Number.isInteger(time) && time >= 0 && time <= 8.64e15

/** Reads `{value}` or `{value, time}`; any other value is the value itself, at the time of the message. */
const unwrap = (raw: Json, receivedAt: number): ShadowEntry => {
  if (typeof raw !== "object" || raw === null || !Object.hasOwn(raw, "value")) return { value: raw, time: receivedAt }
  const { time, value } = raw as { readonly value: Json; readonly time?: Json }
  const members = Object.keys(raw).length
  if (members === 1) return { value, time: receivedAt }
  return members === 2 && isTime(time) ? { value, time } : { value: raw, time: receivedAt }
}

/**
 * The params are an object from property to value, or to `{value, time}` with
 * `time` in Unix milliseconds; default: the time of the message.
 */
const propertyPost = DeviceMethod.update({
  name: "thing.event.property.post",
  action: "PostProperty",
  values: ValueCount.ofMembers,
  decode: ({ params }): Read<Members> => {
    if (!isMembers(params)) return Result.fail(fieldError("params", "expected an object from property to value"))
    return Object.keys(params).length > maxProperties ? Result.fail(tooManyProperties) : Result.succeed(params)
  },
  update: (params, state, { receivedAt }) => remarked(state.report(valuesIn(params, receivedAt), receivedAt))
})

// Made when they are needed, and not when the message begins to wait for its commit (docs/decisions/0125-pauses.md).
const valuesIn = (params: Members, receivedAt: number): Reports["properties"] =>
  Object.keys(params).filter(isId).map((id) => [id, unwrap(params[id]!, receivedAt)] as const)

const eventMethod = /^thing\.event\.([^.]+)\.post$/

/** The params are the outputs of an event, or `{value: outputs, time}`. */
const eventPost = DeviceMethod.update({
  name: "thing.event.*.post",
  action: "PostEvent",
  decode: ({ method, params, receivedAt }): Read<Occurrence> => {
    const eventId = eventMethod.exec(method)?.[1] ?? ""
    if (!isEventId(eventId)) return Result.fail(topicError)
    if (!isMembers(params)) {
      return Result.fail(fieldError("params", "expected an object with the outputs of the event"))
    }
    const wrapped = unwrap(params, receivedAt)
    const { time, value } = isMembers(wrapped.value) ? wrapped : { value: params, time: receivedAt }
    return Result.succeed({ eventId, value, time })
  },
  update: (occurrence, state, { receivedAt }) => {
    const misfit = state.occur(occurrence.eventId, occurrence.value, occurrence.time, receivedAt)
    return misfit === undefined ? remarked(remarkOn(occurrence, receivedAt)) : replyTo(misfit)
  }
})

/** What the reply says of an event that is kept. */
const remarkOn = ({ eventId, time }: Occurrence, receivedAt: number): Remarks =>
  isAhead(time, receivedAt) ? { [eventId]: aheadRemark } : {}

const within = (member: string, { message, path }: InputIssue): InputIssue => ({ path: [member, ...path], message })

/** Returns the reply to an event. */
export const replyTo = (misfit: Misfit | undefined): DeviceReply =>
  misfit === undefined
    ? success({})
    : { ...failure(misfit.code, misfit.message), issues: [within("params", misfit.issue)] }

/** The reply to most messages. */
const taken = success({})

/** Says which properties and events the message has taken effect without, or at another time. */
const remarked = (remarks: Remarks): DeviceReply => {
  const ids = Object.keys(remarks)
  return ids.length === 0
    ? taken
    : { ...success(remarks), issues: ids.map((id) => ({ path: ["params", id], message: remarks[id]! })) }
}

/** Refuses a message with more than 200 properties or 200 events. */
export const withinLimits = (reports: Reports): Read<Reports> => {
  const { events, properties } = reports
  if (new Set(properties.map(([id]) => id)).size > maxProperties) return Result.fail(tooManyProperties)
  return events.length > maxEvents ? Result.fail(tooManyEvents) : Result.succeed(reports)
}

/** Puts reports into the state. The reply names the properties and events that are not kept, or not at their time. */
export const record = ({ events, properties }: Reports, state: DeviceState, receivedAt: number): DeviceReply => {
  const remarks: Record<string, string> = {}
  if (properties.length > 0) Object.assign(remarks, state.report(properties, receivedAt))
  for (const occurrence of events) {
    const { eventId, time, value } = occurrence
    const misfit = state.occur(eventId, value, time, receivedAt)
    Object.assign(remarks, misfit === undefined ? remarkOn(occurrence, receivedAt) : { [eventId]: misfit.message })
  }
  return remarked(remarks)
}

/** Returns the entries of `{id: one}` or `{id: [several]}`; undefined: the value is no object. */
const entriesOf = (value: Json | undefined, receivedAt: number) => {
  if (value === undefined) return []
  if (!isMembers(value)) return undefined
  return Object.entries(value).filter(([id]) => isId(id)).flatMap(([id, listed]) =>
    (Array.isArray(listed) ? listed as ReadonlyArray<Json> : [listed]).map((one) =>
      [id, unwrap(one, receivedAt)] as const
    )
  )
}

/** Reads the reports in `properties` and `events` of an object. */
export const reportsOf = (params: Members, receivedAt: number): Read<Reports> => {
  const properties = entriesOf(params["properties"], receivedAt)
  if (properties === undefined) {
    return Result.fail(fieldError("properties", "expected an object from property to values"))
  }
  const events = entriesOf(params["events"], receivedAt)
  if (events === undefined || events.some(([id, { value }]) => !isEventId(id) || !isMembers(value))) {
    return Result.fail(fieldError("events", "expected an object from event to {value, time}"))
  }
  return Result.succeed({
    properties,
    events: events.map(([eventId, { time, value }]) => ({ eventId, time, value }))
  })
}

/** Reads several values of each property and several occurrences of each event. */
export const batchOf = (params: unknown, receivedAt: number): Read<Reports> =>
  isMembers(params)
    ? Result.flatMap(reportsOf(params, receivedAt), withinLimits)
    : Result.fail(fieldError("params", "expected an object with properties and events"))

const batchPost = DeviceMethod.update({
  name: "thing.event.property.batch.post",
  values: ValueCount.ofBatch,
  decode: ({ params, receivedAt }) => batchOf(params, receivedAt),
  update: (reports, state, { receivedAt }) => record(reports, state, receivedAt)
})

export const methods = [propertyPost, batchPost, eventPost]
