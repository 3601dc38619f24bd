/**
 * As much of JSON Schema as the API describes its requests with.
 */
import type { SeededRandom } from "./SeededRandom.ts"

export interface JsonSchema {
  readonly $ref?: string
  readonly type?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly additionalProperties?: boolean | JsonSchema
  readonly items?: JsonSchema
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly format?: string
}

type Members = Readonly<Record<string, unknown>>

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isOfType = (type: string, value: unknown): boolean => {
  switch (type) {
    case "object":
      return isMembers(value)
    case "array":
      return Array.isArray(value)
    case "integer":
      return Number.isInteger(value)
    case "null":
      return value === null
    default:
      return typeof value === type
  }
}

/** Whether a value is as the schema says; members that the schema does not know are no matter. */
export const fits = (schema: JsonSchema, value: unknown): boolean => {
  if (schema.anyOf !== undefined && !schema.anyOf.some((one) => fits(one, value))) return false
  if (schema.enum !== undefined && !schema.enum.includes(value)) return false
  if (schema.type !== undefined && !isOfType(schema.type, value)) return false
  if (typeof value === "number") {
    return value >= (schema.minimum ?? -Infinity) && value <= (schema.maximum ?? Infinity)
  }
  if (typeof value === "string") {
    const { length } = Array.from(value)
    return length >= (schema.minLength ?? 0) && length <= (schema.maxLength ?? Infinity) &&
      (schema.pattern === undefined || new RegExp(schema.pattern, "u").test(value))
  }
  const { items } = schema
  if (Array.isArray(value)) return items === undefined || value.every((item) => fits(items, item))
  return !isMembers(value) || membersFit(schema, value)
}

const membersFit = ({ additionalProperties, properties = {}, required = [] }: JsonSchema, value: Members): boolean =>
  required.every((name) => Object.hasOwn(value, name)) &&
  Object.entries(value).every(([name, member]) => {
    if (Object.hasOwn(properties, name)) return fits(properties[name]!, member)
    return typeof additionalProperties !== "object" || fits(additionalProperties, member)
  })

/** Whether a text in a URL may stand for a value that fits. */
export const fitsAsText = (schema: JsonSchema, text: string): boolean =>
  alternatives(schema).some((one) =>
    one.type === "integer" || one.type === "number"
      ? text.trim() !== "" && fits(one, Number(text))
      : fits(one, text)
  )

/** The schema with what it refers to in place of its references. */
export const resolve = (schema: JsonSchema, definitions: Readonly<Record<string, JsonSchema>>): JsonSchema =>
  JSON.parse(
    JSON.stringify(schema, (_, member) =>
      isMembers(member) && typeof member["$ref"] === "string"
        ? definitions[member["$ref"].split("/").at(-1)!]
        : member)
  )

/** The alternatives that are not null. */
export const alternatives = (schema: JsonSchema): ReadonlyArray<JsonSchema> =>
  schema.anyOf === undefined ? [schema] : schema.anyOf.filter(({ type }) => type !== "null").flatMap(alternatives)

/** Each field of an object with its path and schema, fields of fields too. */
export const fields = (
  schema: JsonSchema,
  path: ReadonlyArray<string> = []
): ReadonlyArray<{ readonly path: ReadonlyArray<string>; readonly schema: JsonSchema; readonly required: boolean }> =>
  alternatives(schema).flatMap(({ properties = {}, required = [] }) =>
    Object.entries(properties).flatMap(([name, field]) => [
      { path: [...path, name], schema: field, required: required.includes(name) },
      ...fields(field, [...path, name])
    ])
  )

/** A value for a field, by its name; undefined: any that the schema admits; {@link leaveOut}. */
export type Suggest = (name: string) => unknown

/** Suggested for a field that is not to be there. */
export const leaveOut = Symbol("leaveOut")

const candidates = ["abcdefgh", "a/b", "Device0001", "1", "12:34", "text", "a"]

/** A value that fits. */
export const sample = (schema: JsonSchema, random: SeededRandom, suggest: Suggest, name = ""): unknown => {
  const suggested = suggest(name)
  if (suggested !== undefined && suggested !== leaveOut && fits(schema, suggested)) return suggested
  const others = alternatives(schema)
  if (others.length === 0) return null
  const one = random.pick(others)
  if (one.enum !== undefined) return random.pick(one.enum)
  switch (one.type) {
    case "object": {
      const { additionalProperties, properties, required = [] } = one
      if (properties === undefined) {
        const member = typeof additionalProperties === "object" ? additionalProperties : { type: "integer" }
        return { one: sample(member, random, suggest), two: sample(member, random, suggest) }
      }
      return Object.fromEntries(
        Object.entries(properties)
          .filter(([field]) => required.includes(field) || (suggest(field) !== leaveOut && random.chance(0.5)))
          .map(([field, member]) => [field, sample(member, random, suggest, field)])
      )
    }
    case "array":
      return Array.from({ length: random.below(4) }, () => sample(one.items ?? {}, random, suggest))
    case "boolean":
      return random.chance(0.5)
    case "integer":
    case "number":
      return Math.max(one.minimum ?? 0, 0) + random.below(Math.min(3, (one.maximum ?? 3) - (one.minimum ?? 0) + 1))
    case "string":
      return random.pick(candidates.filter((text) => fits(one, text)))
    default:
      return {}
  }
}

/** The values at the bounds of what fits, and just beyond. */
export const bounds = (schema: JsonSchema): ReadonlyArray<unknown> =>
  alternatives(schema).flatMap((one): ReadonlyArray<unknown> => {
    if (one.enum !== undefined) return [...one.enum, `${one.enum[0]}x`, String(one.enum[0]).toUpperCase()]
    switch (one.type) {
      case "integer":
      case "number": {
        const { maximum = Number.MAX_SAFE_INTEGER, minimum = Number.MIN_SAFE_INTEGER } = one
        return [minimum - 1, minimum, minimum + 1, maximum - 1, maximum, maximum + 1]
      }
      case "string": {
        const { maxLength = 300, minLength = 0 } = one
        const lengths = [minLength - 1, minLength, minLength + 1, maxLength - 1, maxLength, maxLength + 1]
        return lengths.filter((length) => length >= 0).map((length) => "x".repeat(length))
      }
      default:
        return []
    }
  })
