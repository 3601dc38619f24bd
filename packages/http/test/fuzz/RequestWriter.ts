/**
 * Writes requests of one operation, well formed and odd, signed where devices sign.
 */
import { createHmac } from "node:crypto"
import type { Operation, Parameter } from "./ApiDescription.ts"
import * as JsonSchema from "./JsonSchema.ts"
import { encode, form, formType, jsonText } from "./OddValues.ts"
import type { RawRequest } from "./RawRequest.ts"
import type { SeededRandom } from "./SeededRandom.ts"

/** What requests can name, and the secrets that devices sign with. */
export interface Given {
  /** Values of fields and parameters, by name; of an array any. */
  readonly values: Readonly<Record<string, unknown>>
  /** What the device says over HTTP. */
  readonly messages: ReadonlyArray<{ readonly query: Readonly<Record<string, string>>; readonly body: unknown }>
  readonly deviceSecret: string
  readonly productSecret: string
  readonly keys: {
    readonly owner: string
    readonly admin: string
    readonly operator: string
    readonly viewer: string
    /** Of an admin of another project. */
    readonly foreign: string
  }
}

export interface Case {
  readonly operation: string
  /** What is odd about it. */
  readonly oddity: string
  readonly request: RawRequest
  /** Whether it can only be refused. */
  readonly hopeless: boolean
  /** Whether it has the right signature of a device. */
  readonly signed: boolean
}

export const describe = ({ oddity, request: { body, headers, method, path } }: Case): string =>
  `${method} ${path.slice(0, 300)} [${oddity}] ${JSON.stringify(headers).slice(0, 300)} ${
    body === undefined ? "" : `${body.length} bytes ${JSON.stringify(body.toString("latin1").slice(0, 300))}`
  }`

/** A request before it is written down. */
interface Draft {
  /** Segments by parameter, encoded. */
  readonly path: Readonly<Record<string, string>>
  /** Names and values, encoded. */
  readonly query: ReadonlyArray<readonly [string, string]>
  readonly headers: Readonly<Record<string, string>>
  /** A value that is written as JSON. */
  readonly json?: unknown
  /** In place of `json`. */
  readonly raw?: Buffer
  readonly signed?: boolean
}

export type Alter = (draft: Draft) => Draft

export type Members = Readonly<Record<string, unknown>>

export const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The value with another one at a path; undefined: with nothing there. */
export const change = (target: unknown, [name, ...rest]: ReadonlyArray<string>, value: unknown): unknown => {
  if (name === undefined) return value
  const { [name]: before, ...others } = isMembers(target) ? target : {}
  const after = change(before, rest, value)
  return after === undefined ? others : { ...others, [name]: after }
}

export const withHeader = (name: string, value: string | undefined): Alter => (draft) => {
  const { [name]: _before, ...others } = draft.headers
  return { ...draft, headers: value === undefined ? others : { ...others, [name]: value } }
}

export const withSegment = (name: string, segment: string): Alter => (draft) => ({
  ...draft,
  path: { ...draft.path, [name]: segment }
})

export const withoutQuery = (name: string): Alter => (draft) => ({
  ...draft,
  query: draft.query.filter(([other]) => other !== name)
})

export const withQuery = (name: string, value: string): Alter => (draft) => ({
  ...draft,
  query: [...withoutQuery(name)(draft).query, [name, value]]
})

export const withBytes = (bytes: Buffer): Alter => (draft) => ({ ...draft, raw: bytes })

export const short = (text: unknown): string => String(text).slice(0, 40)

export const hmac = (method: unknown, secret: string, text: string): string =>
  createHmac(String(method).replace("hmac", ""), secret).update(text).digest("hex")

const isHmac = (method: unknown): boolean => /^hmac(?:md5|sha1|sha256)$/.test(String(method))

/** Signs as the device that is given, whatever is claimed. */
export const sign = (isUplink: boolean, given: Given, draft: Draft): Draft => {
  if (isUplink) {
    const query = Object.fromEntries(new URLSearchParams(draft.query.map((pair) => pair.join("=")).join("&")))
    if (query["sign"] === undefined || !isHmac(query["sign_method"])) return draft
    const text = `productKey${query["product_key"]}deviceName${query["device_name"]}random${query["random"]}`
    const made = hmac(query["sign_method"], given.deviceSecret, text)
    return {
      ...draft,
      query: draft.query.map(([name, value]) => [name, name === "sign" ? made : value]),
      signed: true
    }
  }
  const { json, raw } = draft
  if (!isMembers(json) || typeof json["sign"] !== "string" || !isHmac(json["sign_method"])) return draft
  const name = "mac" in json ? `mac${json["mac"]}` : `deviceName${json["device_name"]}`
  const text = `${name}productKey${json["product_key"]}random${json["random"]}`
  const made = hmac(json["sign_method"], given.productSecret, text)
  return { ...draft, json: { ...json, sign: made }, signed: raw === undefined }
}

export const isOpen = (schema: JsonSchema.JsonSchema): boolean =>
  JsonSchema.alternatives(schema).some(({ properties, type }) => type === "object" && properties === undefined)

export const isText = (schema: JsonSchema.JsonSchema): boolean =>
  JsonSchema.alternatives(schema).some(({ type }) => type === "string")

export const isList = (schema: JsonSchema.JsonSchema): boolean =>
  JsonSchema.alternatives(schema).some(({ type }) => type === "array")

/** What is named by them need not exist to be asked for. */
export const isFree = ({ name }: Parameter): boolean => ["service_id", "property_id", "message_id"].includes(name)

/** What writes requests of one operation. */
export const makeWriter = (operation: Operation, given: Given, random: SeededRandom) => {
  const { bodies, method, parameters, path, secured } = operation
  const body = bodies["application/json"]
  const takesForm = "multipart/form-data" in bodies
  const isUplink = path.endsWith("/thing-uplink")
  const suggest: JsonSchema.Suggest = (name) => {
    const suggested = given.values[name]
    return Array.isArray(suggested) ? random.pick(suggested) : suggested
  }
  const parametersIn = (place: string) => parameters.filter((parameter) => parameter.in === place)

  /** As it should be. */
  const draft = (): Draft => {
    const valueOf = ({ name, schema }: Parameter) => {
      const suggestText: JsonSchema.Suggest = (name) => {
        const suggested = suggest(name)
        return typeof suggested === "number" && isText(schema) ? String(suggested) : suggested
      }
      return encode(String(JsonSchema.sample(schema, random, suggestText, name)))
    }
    const message = random.pick(given.messages)
    const wanted = parametersIn("query").filter(({ required }) => required || (!isUplink && random.chance(0.3)))
    const query = Object.fromEntries(wanted.map((parameter) => [parameter.name, valueOf(parameter)]))
    return {
      path: Object.fromEntries(parametersIn("path").map((parameter) => [parameter.name, valueOf(parameter)])),
      query: Object.entries(isUplink ? { ...query, ...message.query } : query),
      headers: {
        ...secured
          ? { authorization: `Bearer ${path.includes("/projects") ? given.keys.owner : given.keys.admin}` }
          : {},
        ...body === undefined ? {} : { "content-type": "application/json" },
        ...takesForm ? { "content-type": formType } : {}
      },
      ...body === undefined
        ? {}
        : { json: isUplink ? message.body : JsonSchema.sample(body, random, suggest) },
      ...takesForm ? { raw: form } : {}
    }
  }

  const write = (oddity: string, made: Draft, hopeless: boolean, as = method): Case => {
    const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => made.path[name]!)
    const query = made.query.map(([name, value]) => `${name}=${value}`).join("&")
    const bytes = made.raw ?? (made.json === undefined ? undefined : Buffer.from(jsonText(made.json)))
    return {
      operation: `${method} ${path}`,
      oddity,
      request: { method: as, path: query === "" ? url : `${url}?${query}`, headers: made.headers, body: bytes },
      hopeless,
      signed: made.signed === true
    }
  }

  const signed = (made: Draft): Draft => secured ? made : sign(isUplink, given, made)

  return {
    ...operation,
    random,
    given,
    suggest,
    body,
    bodyFields: body === undefined ? [] : JsonSchema.fields(body),
    queryFields: parametersIn("query"),
    pathFields: parametersIn("path"),
    takesForm,
    isUplink,
    /** A device that names another than it signs for looks like one that guesses. */
    isClaim: (name: string): boolean =>
      !secured && ["product_key", "device_name", "sign", ...isUplink ? [] : ["mac"]].includes(name),
    draft: () => signed(draft()),
    write,
    /** With one thing that is odd. */
    odd: (oddity: string, alter: Alter, hopeless = false): Case => write(oddity, signed(alter(draft())), hopeless),
    /** With another body, which is hopeless when it does not fit. */
    oddJson: (oddity: string, alter: (json: unknown) => unknown): Case => {
      const made = draft()
      const after = signed({ ...made, json: alter(made.json) })
      return write(oddity, after, !JsonSchema.fits(body!, JSON.parse(jsonText(after.json))))
    },
    /** With a signature that is not made again. */
    unsigned: (oddity: string, alter: Alter): Case => write(oddity, { ...alter(signed(draft())), signed: false }, true)
  }
}

export type Writer = ReturnType<typeof makeWriter>
