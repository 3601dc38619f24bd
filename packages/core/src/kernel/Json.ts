/**
 * JSON values: what they are, how deep they are nested, and when two are equal.
 */
import type { Schema } from "effect"

export type Json = Schema.Json

/** Whether two JSON values are equal. The order of members does not matter. */
export const equalJson = (a: Json, b: Json): boolean => {
  if (a === b) return true
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const [left, right] = [a as Readonly<Record<string, Json>>, b as Readonly<Record<string, Json>>]
  const names = Object.keys(left)
  return names.length === Object.keys(right).length &&
    names.every((name) => Object.hasOwn(right, name) && equalJson(left[name]!, right[name]!))
}

/**
 * Whether `value` is JSON with finite numbers and at most `levels` objects and arrays inside each other. Programs
 * may give what their compiler has not seen: storages differ in what they make of a `Date` or a `bigint`.
 */
export const isFiniteJson = (value: Json | undefined, levels: number): boolean => {
  if (typeof value === "string" || typeof value === "boolean" || value === null) return true
  if (typeof value === "number") return Number.isFinite(value)
  return typeof value === "object" && levels > 0 && isPlain(value) &&
    Object.values(value).every((member) => isFiniteJson(member, levels - 1))
}

/** Whether `value` is an object with members by name: no array, no text, no `Map`. */
export const isJsonObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value) && isPlain(value)

/** An array or a plain object, also one of another realm, as in a test of jest. */
const isPlain = (value: object): boolean => {
  if (Array.isArray(value)) return true
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
