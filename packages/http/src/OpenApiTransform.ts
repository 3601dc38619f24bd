/**
 * Corrects the OpenAPI description where the schemas say less than, or something
 * else than, what is on the wire.
 */
import { Predicate } from "effect"
import * as SessionCookie from "./middleware/SessionCookie.ts"

/** Corrects a description. */
export const complete = (spec: Record<string, unknown>): Record<string, unknown> => {
  const paths = Object.entries(spec["paths"] as Readonly<Record<string, Readonly<Record<string, Json>>>>)
  const described = paths.map(([path, methods]) =>
    [path, Object.fromEntries(Object.entries(methods).map(([method, of]) => [method, operation(of)]))] as const
  )
  return walk({
    ...spec,
    paths: Object.fromEntries(described),
    components: withCookie(spec["components"] as Json)
  }) as Record<string, unknown>
}

const withCookie = (components: Json): Json => ({
  ...components,
  securitySchemes: {
    ...components["securitySchemes"] as Json,
    browserSession: {
      type: "apiKey",
      in: "cookie",
      name: SessionCookie.plainName,
      description:
        "Of a browser that has signed in; over TLS the name has the prefix `__Host-`. A request that is not " +
        "GET or HEAD needs the header `X-CSRF-Protection: 1` as well."
    }
  }
})

/** What takes an access key takes the cookie of a browser session in its place. */
const security = (of: ReadonlyArray<Json>): ReadonlyArray<Json> =>
  of.some((scheme) => "accessKey" in scheme) ? [...of, { browserSession: [] }] : of

type Json = Readonly<Record<string, unknown>>

const isJson = (value: unknown): value is Json => Predicate.isObject(value) && !Array.isArray(value)

/** Whether a schema is that of a number in a path or a query. */
const isNumericText = ({ pattern, type }: Json): boolean =>
  type === "string" && typeof pattern === "string" && (pattern.startsWith("^[+-]?(?:\\d+") || pattern === "^\\d{1,16}$")

/** The pattern of any text of the API. It tells a reader nothing, so the description leaves it out. */
const wellFormedPattern = "^[^\\0\\p{Cs}]*$"

/** A union without its null: nothing outside of JSON can be null. */
const withoutNull = (schema: Json): Json => {
  const { anyOf, ...rest } = schema
  if (!Array.isArray(anyOf)) return schema
  const members = (anyOf as ReadonlyArray<Json>).filter(({ type }) => type !== "null")
  return members.length === 1 ? { ...members[0], ...rest } : { ...rest, anyOf: members }
}

const safeInteger = Number.MAX_SAFE_INTEGER

const isNull = ({ anyOf, type }: Json): boolean =>
  type === "null" || (Array.isArray(anyOf) && (anyOf as ReadonlyArray<Json>).every(isNull))

/** The members of an object, without those that a request must leave out. */
const withoutRefused = (properties: Json): Json =>
  Object.fromEntries(Object.entries(properties).filter(([, schema]) => !isJson(schema) || !isNull(schema)))

/** Corrects one schema; its parts are corrected already. */
const describe = (schema: Json): Json => {
  const { additionalProperties, allOf, format, maximum, minimum, pattern, properties, ...rest } = schema
  // An unset date is an empty text.
  if (format === "date-time") {
    const { description } = rest as Json
    return {
      ...description === undefined ? {} : { description },
      anyOf: [{ type: "string", format }, { type: "string", maxLength: 0 }],
      examples: ["2026-01-31T12:00:00.000Z"]
    }
  }
  return {
    ...rest,
    ...isJson(properties) ? { properties: withoutRefused(properties) } : {},
    // The server ignores members that it does not know.
    ...additionalProperties === undefined || additionalProperties === false ? {} : { additionalProperties },
    ...format === undefined ? {} : { format },
    ...maximum === undefined || maximum === safeInteger ? {} : { maximum },
    ...minimum === undefined || minimum === -safeInteger ? {} : { minimum },
    ...pattern === undefined || pattern === wellFormedPattern ? {} : { pattern },
    // What a text is to be beside well-formed.
    ...Object.assign({}, ...(allOf ?? []) as ReadonlyArray<Json>) as Json
  }
}

const isSchema = (value: Json): boolean => "type" in value || "anyOf" in value || "$ref" in value

const walk = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(walk)
  if (!isJson(value)) return value
  const parts = Object.fromEntries(Object.entries(value).map(([key, part]) => [key, walk(part)]))
  return isSchema(value) ? describe(parts) : parts
}

/** The limits and defaults of the parameters that all lists have. */
const lists: Readonly<Record<string, Json>> = {
  page: { minimum: 1, default: 1 },
  page_size: { minimum: 1, maximum: 100, default: 10 }
}

const parameter = (of: Json): Json => {
  if (!isJson(of["schema"])) return of
  const { description, pattern, ...rest } = describe(withoutNull(of["schema"]))
  return {
    ...of,
    ...description === undefined ? {} : { description },
    schema: isNumericText({ pattern, ...rest })
      ? { minimum: 0, ...rest, type: "integer", ...lists[String(of["name"])] }
      : { ...rest, ...pattern === undefined ? {} : { pattern } }
  }
}

const requestBody = (body: Json): Json => {
  if (!isJson(body["content"])) return body
  let required = true
  const content = Object.fromEntries(
    Object.entries(body["content"] as Readonly<Record<string, Json>>).map(([mediaType, { schema, ...rest }]) => {
      if (!isJson(schema)) return [mediaType, { schema, ...rest }]
      const { anyOf } = schema
      if (Array.isArray(anyOf) && (anyOf as ReadonlyArray<Json>).some(({ type }) => type === "null")) required = false
      return [mediaType, { ...rest, schema: withoutNull(schema) }]
    })
  )
  return { ...body, content, required }
}

/** Failures of bodies, by status: only an operation that takes a body has them. */
const bodyFailures = new Set(["413", "415"])

const responses = (of: Json): Json =>
  "requestBody" in of
    ? of["responses"] as Json
    : Object.fromEntries(Object.entries(of["responses"] as Json).filter(([status]) => !bodyFailures.has(status)))

const operation = (of: Json): Json => ({
  ...of,
  responses: responses(of),
  ...Array.isArray(of["security"]) ? { security: security(of["security"]) } : {},
  ...Array.isArray(of["parameters"]) ? { parameters: (of["parameters"] as ReadonlyArray<Json>).map(parameter) } : {},
  ...isJson(of["requestBody"]) ? { requestBody: requestBody(of["requestBody"]) } : {}
})
