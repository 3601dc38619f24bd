/**
 * `thing.event.property.post`: a device reports values of its properties
 * (alink-facts, section 3.1).
 */
import { Predicate } from "effect"
import type { Json, PropertyReport, ShadowEntry } from "../shadow/Shadow.ts"
import { type DeviceReply, parameterError, tooManyProperties } from "./DeviceReply.ts"

/** Properties in one message. */
export const maxProperties = 200

/**
 * Reads `params`: an object from property to value, or to `{value, time}` with
 * `time` in Unix milliseconds; without time the value is as old as the message.
 * Answers the reply when they are something else.
 */
export const decodePropertyPost = (params: unknown, receivedAt: number): PropertyReport | DeviceReply => {
  if (!Predicate.isObject(params)) return parameterError("params: expected an object from property to value")
  const names = Object.keys(params)
  if (names.length > maxProperties) return tooManyProperties
  const properties: Record<string, ShadowEntry> = {}
  for (const name of names) {
    // Not an identifier: assigning it would change the object's prototype.
    if (name !== "__proto__") properties[name] = readEntry((params as Record<string, Json>)[name]!, receivedAt)
  }
  return { properties, receivedAt }
}

/** An object is the wrapped form when it has `value`, perhaps a numeric `time`, and nothing else. */
const readEntry = (raw: Json, receivedAt: number): ShadowEntry => {
  if (typeof raw !== "object" || raw === null || !Object.hasOwn(raw, "value")) return { value: raw, time: receivedAt }
  const { time, value } = raw as { readonly value: Json; readonly time?: Json }
  const members = Object.keys(raw).length
  if (members === 1) return { value, time: receivedAt }
  return members === 2 && isTime(time) ? { value, time } : { value: raw, time: receivedAt }
}

/** Unix milliseconds that a date can hold. */
const isTime = (time: Json | undefined): time is number =>
  typeof time === "number" && Number.isInteger(time) && time >= 0 && time <= 8.64e15
