/**
 * Requests made of the API's own description: as it wants them, and with one
 * thing about them that is odd.
 */
import { createHmac } from "node:crypto"
import type { Operation, Parameter } from "./ApiDescription.ts"
import * as JsonSchema from "./JsonSchema.ts"
import {
  altered,
  badAuthorizations,
  brokenForms,
  contentTypes,
  documents,
  encode,
  form,
  formType,
  isWellFormed,
  jsonText,
  longText,
  names,
  numbers,
  oddContentTypes,
  oddForms,
  oddHeaders,
  oddLists,
  segments,
  texts,
  worstTexts,
  wrongTypes
} from "./OddValues.ts"
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

type Alter = (draft: Draft) => Draft

type Members = Readonly<Record<string, unknown>>

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The value with another one at a path; undefined: with nothing there. */
const change = (target: unknown, [name, ...rest]: ReadonlyArray<string>, value: unknown): unknown => {
  if (name === undefined) return value
  const { [name]: before, ...others } = isMembers(target) ? target : {}
  const after = change(before, rest, value)
  return after === undefined ? others : { ...others, [name]: after }
}

const withHeader = (name: string, value: string | undefined): Alter => (draft) => {
  const { [name]: _before, ...others } = draft.headers
  return { ...draft, headers: value === undefined ? others : { ...others, [name]: value } }
}

const withSegment = (name: string, segment: string): Alter => (draft) => ({
  ...draft,
  path: { ...draft.path, [name]: segment }
})

const withoutQuery = (name: string): Alter => (draft) => ({
  ...draft,
  query: draft.query.filter(([other]) => other !== name)
})

const withQuery = (name: string, value: string): Alter => (draft) => ({
  ...draft,
  query: [...withoutQuery(name)(draft).query, [name, value]]
})

const withBytes = (bytes: Buffer): Alter => (draft) => ({ ...draft, raw: bytes })

const short = (text: unknown): string => String(text).slice(0, 40)

const hmac = (method: unknown, secret: string, text: string): string =>
  createHmac(String(method).replace("hmac", ""), secret).update(text).digest("hex")

const isHmac = (method: unknown): boolean => /^hmac(?:md5|sha1|sha256)$/.test(String(method))

/** Signs as the device that is given, whatever is claimed. */
const sign = (isUplink: boolean, given: Given, draft: Draft): Draft => {
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

const isOpen = (schema: JsonSchema.JsonSchema): boolean =>
  JsonSchema.alternatives(schema).some(({ properties, type }) => type === "object" && properties === undefined)

const isText = (schema: JsonSchema.JsonSchema): boolean =>
  JsonSchema.alternatives(schema).some(({ type }) => type === "string")

const isList = (schema: JsonSchema.JsonSchema): boolean =>
  JsonSchema.alternatives(schema).some(({ type }) => type === "array")

/** What is named by them need not exist to be asked for. */
const isFree = ({ name }: Parameter): boolean => ["service_id", "property_id", "message_id"].includes(name)

/** What writes requests of one operation. */
const makeWriter = (operation: Operation, given: Given, random: SeededRandom) => {
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

type Writer = ReturnType<typeof makeWriter>

const hopelessPaths = ({ method, odd, pathFields, random }: Writer): ReadonlyArray<Case> =>
  pathFields.filter((parameter) => !isFree(parameter)).flatMap(({ name }) =>
    random.some(40, segments)
      // Something may have a small number.
      .filter((segment) => !/^(?:batch|firmware|task)_id$/.test(name) || !/^\d{1,9}$/.test(segment))
      // A route of its own may be found where a segment is left out.
      .filter((segment) => method !== "GET" || !["", ".", "..", "#fragment"].includes(segment))
      .map((segment) => odd(`${name} ${short(segment)}`, withSegment(name, segment), true))
  )

const hopelessQueries = ({ odd, queryFields, random, secured, suggest }: Writer): ReadonlyArray<Case> =>
  queryFields.flatMap(({ name, required, schema }) => {
    const misfits = [...random.some(30, texts), ...JsonSchema.bounds(schema).map(String)].filter((text) =>
      !JsonSchema.fitsAsText(schema, text) && (secured || isWellFormed(text))
    )
    const twice: Alter = (draft) => {
      const once = withQuery(name, encode(String(suggest(name) ?? 1)))(draft)
      return { ...once, query: [...once.query, once.query.at(-1)!] }
    }
    return [
      ...required ? [odd(`no ${name}`, withoutQuery(name), true)] : [],
      ...misfits.map((text) => odd(`${name} ${short(text)}`, withQuery(name, encode(text)), true)),
      ...isList(schema) ? [] : [odd(`${name} twice`, twice, true)]
    ]
  })

/** Bodies that are not well formed, or of another form. */
const brokenBodies = ({ draft, isUplink, needsBody, odd, random }: Writer): ReadonlyArray<Case> => {
  const raw = (oddity: string, bytes: Buffer | string, hopeless: boolean) =>
    odd(oddity, withBytes(Buffer.from(bytes as string)), hopeless)
  const text = jsonText(draft().json)
  return [
    raw("no body", "", needsBody),
    raw("white space", " \n ", true),
    raw("half a body", text.slice(0, -1), true),
    raw("a body cut somewhere", text.slice(0, 1 + random.below(text.length - 1)), true),
    raw("a body and more", `${text}}`, true),
    raw("two bodies", `${text}${text}`, true),
    raw("a body with a comment", `/* */${text}`, true),
    raw("quotes of another kind", text.replaceAll("\"", "'"), text.includes("\"")),
    raw("a comma too many", text.replace(/\}$/, ",}"), true),
    raw("NaN", "NaN", true),
    raw("undefined", "undefined", true),
    raw("an array", `[${text}]`, !isUplink),
    raw("text", JSON.stringify(text), !isUplink),
    raw("a number", "5", !isUplink),
    raw("true", "true", !isUplink),
    raw("null", "null", needsBody && !isUplink),
    raw("a byte order mark", `\uFEFF${text}`, false),
    raw("UTF-16", Buffer.from(text, "utf16le"), true),
    raw("bytes that are no UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]), false),
    raw("half a character in UTF-8", Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), !isUplink),
    raw("NUL bytes", Buffer.alloc(100), true),
    raw("brackets", "[".repeat(100_000), true),
    raw("levels", "{\"a\":".repeat(20_000) + "1" + "}".repeat(20_000), false),
    // The largest are not sent everywhere.
    ...isUplink || random.chance(0.3)
      ? [
        raw("more levels", "[".repeat(500_000) + "]".repeat(500_000), !isUplink),
        raw("too many bytes", `${text.slice(0, -1)}${" ".repeat(2 * 1024 * 1024)}}`, true)
      ]
      : []
  ]
}

const hopelessBodies = (writer: Writer): ReadonlyArray<Case> => {
  const { bodyFields, isUplink, odd, oddJson, random } = writer
  return [
    ...bodyFields.flatMap(({ path, required, schema }) => {
      const name = path.join(".")
      const bounds = [...JsonSchema.bounds(schema), ...random.some(20, [...numbers, ...texts])]
      return [
        ...required ? [oddJson(`no ${name}`, (json) => change(json, path, undefined))] : [],
        ...wrongTypes.map((value) => oddJson(`${name} of a wrong type`, (json) => change(json, path, value))),
        ...bounds.map((value) => oddJson(`${name} ${short(value)}`, (json) => change(json, path, value)))
      ]
    }),
    ...brokenBodies(writer),
    ...isUplink
      ? []
      : contentTypes.map((type) => odd(`a body of type ${type}`, withHeader("content-type", type), true))
  ].filter(({ hopeless }) => hopeless)
}

const hopelessForms = ({ odd }: Writer): ReadonlyArray<Case> => [
  ...["application/json", "text/plain", "multipart/form-data"].map((type) =>
    odd(`a form of type ${type}`, withHeader("content-type", type), true)
  ),
  ...brokenForms.map(([oddity, bytes]) => odd(oddity, withBytes(bytes), true))
]

const hopelessKeys = ({ given, method, odd, path, pathFields }: Writer): ReadonlyArray<Case> => {
  const roles: ReadonlyArray<keyof Given["keys"]> = [
    ...method === "GET" ? [] : ["viewer"] as const,
    ...pathFields.length === 0 ? [] : ["foreign"] as const,
    ...path.includes("/projects") ? ["admin", "operator"] as const : [],
    ...path.includes("/access-keys") || path.includes("/webhook-key") ? ["operator"] as const : []
  ]
  return [
    ...badAuthorizations.map((authorization) =>
      odd(`the key ${short(authorization)}`, withHeader("authorization", authorization), true)
    ),
    ...roles.map((role) => odd(`the role ${role}`, withHeader("authorization", `Bearer ${given.keys[role]}`), true))
  ]
}

/** Cases of an operation that can only be refused. */
export const hopelessCases = (operation: Operation, given: Given, random: SeededRandom): ReadonlyArray<Case> => {
  const writer = makeWriter(operation, given, random)
  return [
    ...hopelessPaths(writer),
    ...hopelessQueries(writer),
    ...writer.body === undefined ? [] : hopelessBodies(writer),
    ...writer.takesForm ? hopelessForms(writer) : [],
    ...writer.secured ? hopelessKeys(writer) : []
  ]
}

const oddUrls = ({ isClaim, odd, pathFields, queryFields, random, secured }: Writer): ReadonlyArray<Case> => [
  ...pathFields.filter(isFree).flatMap(({ name }) =>
    random.some(12, segments).map((segment) => odd(`${name} ${short(segment)}`, withSegment(name, segment)))
  ),
  ...queryFields.filter(({ name }) => !isClaim(name)).flatMap(({ name, schema }) =>
    [...worstTexts, ...random.some(4, texts), ...JsonSchema.bounds(schema).map(String)].filter((text) =>
      JsonSchema.fitsAsText(schema, text) && (secured || isWellFormed(text))
    ).map((text) => odd(`${name} ${short(text)}`, withQuery(name, encode(text))))
  ),
  odd("an unknown parameter", withQuery("unknown", "1")),
  odd("a parameter without a name", withQuery("", "")),
  odd("a parameter that is no UTF-8", withQuery("unknown", "%ff")),
  odd("a parameter that is badly encoded", withQuery("unknown", "%zz")),
  odd("parameters like an array", withQuery("page[]", "1")),
  odd("parameters like an object", withQuery("__proto__[admin]", "1")),
  odd("a thousand parameters", (draft) => ({
    ...draft,
    query: [...draft.query, ...Array.from({ length: 1000 }, (_, i): readonly [string, string] => [`p${i}`, "1"])]
  }))
]

/** Values of a field that fit its description, and are odd nevertheless. */
const oddValues = (schema: JsonSchema.JsonSchema, random: SeededRandom): ReadonlyArray<unknown> => {
  const bounds = JsonSchema.bounds(schema)
  const values = isText(schema)
    ? [...bounds, ...worstTexts, ...random.some(4, texts), random.pick([longText, ...texts])]
    : isList(schema)
    ? [...oddLists, ...random.some(10, documents)]
    : [...bounds, ...random.some(4, numbers)]
  return values.filter((value) => JsonSchema.fits(schema, JSON.parse(jsonText(value))))
}

const oddFields = ({ bodyFields, isClaim, oddJson, random }: Writer): ReadonlyArray<Case> =>
  bodyFields.filter(({ path }) => !isClaim(path.join("."))).flatMap(({ path, schema }) => {
    const name = path.join(".")
    if (!isOpen(schema)) {
      return oddValues(schema, random).map((value) =>
        oddJson(`${name} ${short(value)}`, (json) => change(json, path, value))
      )
    }
    return [
      ...[...worstTexts, ...random.some(5, names)].map((member) =>
        oddJson(`${name} with ${short(member)}`, (json) => change(json, [...path, member], random.pick(documents)))
      ),
      ...random.some(10, documents).map((document) =>
        oddJson(`${name} with JSON`, (json) => change(json, [...path, "power"], document))
      ),
      ...Array.from({ length: 15 }, () =>
        oddJson(`${name} with a change`, (json) => {
          const value = path.reduce((value, member) => isMembers(value) ? value[member] : undefined, json)
          return change(json, path, altered(value, random))
        }))
    ]
  })

const oddBodies = (writer: Writer): ReadonlyArray<Case> => {
  const { given, odd, oddJson, random } = writer
  const { models } = given.values
  return [
    ...oddFields(writer),
    oddJson("more fields", (json) => change(change(json, ["unknown"], { a: 1 }), ["__proto__"], { admin: true })),
    oddJson("half a field", (json) => change(json, ["\uD800"], "\uDC00")),
    ...brokenBodies(writer).filter(({ hopeless }) => !hopeless),
    ...random.some(4, oddContentTypes).map((type) =>
      odd(`a body of type ${short(type)}`, withHeader("content-type", type))
    ),
    // Documents inside of documents.
    ...writer.bodyFields.some(({ path }) => path[0] === "model_data")
      ? Object.entries(models as Members).flatMap(([model_type, model]) =>
        Array.from({ length: 20 }, () =>
          oddJson(`a changed model in ${model_type}`, (json) => ({
            ...json as Members,
            model_type,
            model_data: jsonText(altered(model, random))
          })))
      )
      : []
  ]
}

/** What a device may say. */
const oddMessages = ({ odd, oddJson, random }: Writer): ReadonlyArray<Case> => [
  ...Array.from({ length: 120 }, () => oddJson("a changed message", (json) => altered(json, random))),
  ...random.some(20, documents).map((document) => oddJson("a message of JSON", () => document)),
  ...random.some(20, documents).map((document) =>
    oddJson("params of JSON", (json) => change(json, ["params"], document))
  ),
  ...random.some(40, documents).map((document) =>
    oddJson("a property of JSON", (json) => change(json, ["params", random.pick(names)], document))
  ),
  ...["text/plain", "application/octet-stream"].flatMap((type) =>
    ["", "00", "0", "zz", "0".repeat(300_000), "\0", "\xff"].map((bytes) =>
      odd(
        `${bytes.length} bytes as ${type}`,
        (draft) => withHeader("content-type", type)(withBytes(Buffer.from(bytes, "latin1"))(draft))
      )
    )
  )
]

/** Cases of an operation that may be taken or refused. */
export const uncertainCases = (operation: Operation, given: Given, random: SeededRandom): ReadonlyArray<Case> => {
  const writer = makeWriter(operation, given, random)
  const { draft, isUplink, method, odd, takesForm, write } = writer
  return [
    ...oddUrls(writer),
    ...writer.body === undefined ? [] : oddBodies(writer),
    ...isUplink ? oddMessages(writer) : [],
    ...takesForm ? oddForms.map(([oddity, bytes]) => odd(oddity, withBytes(bytes))) : [],
    ...random.some(8, oddHeaders).map(([oddity, headers]) =>
      odd(oddity, (draft) => ({ ...draft, headers: { ...draft.headers, ...headers } }))
    ),
    ...method === "GET"
      ? [write("HEAD", draft(), false, "HEAD"), odd("a body where none is", withBytes(Buffer.from("{\"page\":0}")))]
      : [],
    // In the end, since they may take away what the others name.
    ...Array.from({ length: 3 }, () => odd("nothing", (draft) => draft))
  ]
}

/** Cases of an operation of devices whose signature is wrong. */
export const wrongSignatureCases = (operation: Operation, given: Given, random: SeededRandom): ReadonlyArray<Case> => {
  const { body, isUplink, unsigned } = makeWriter(operation, given, random)
  const set = (name: string, value: string): Alter =>
    isUplink
      ? withQuery(name, encode(value))
      : (draft) => ({ ...draft, json: change(draft.json, [name], value) })
  const claims = isUplink ? ["product_key", "device_name", "random"] : ["product_key", "random", "mac", "device_name"]
  const known = claims.filter((name) => isUplink || JsonSchema.fields(body!).some(({ path }) => path[0] === name))
  const signatures = [...texts, "0".repeat(32), "0".repeat(40), "0".repeat(64), "F".repeat(40), "A".repeat(27) + "="]
  return [
    ...signatures.map((text) => unsigned(`sign ${short(text)}`, set("sign", text))),
    ...known.flatMap((name) => texts.map((text) => unsigned(`${name} ${short(text)}`, set(name, text)))),
    ...["hmacsha1", "hmacsha256", "hmacmd5"].map((method) =>
      unsigned(
        `${method} with the signature of nothing`,
        (draft) => set("sign_method", method)(set("sign", hmac(method, "", ""))(draft))
      )
    )
  ]
}
