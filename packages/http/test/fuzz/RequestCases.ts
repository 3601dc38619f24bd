/**
 * Requests made of the API's own description: as it wants them, and with one
 * thing about them that is odd.
 */
import type { Operation } from "./ApiDescription.ts"
import * as JsonSchema from "./JsonSchema.ts"
import {
  altered,
  badAuthorizations,
  brokenForms,
  contentTypes,
  documents,
  encode,
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
import {
  type Alter,
  type Case,
  change,
  type Given,
  hmac,
  isFree,
  isList,
  isMembers,
  isOpen,
  isText,
  makeWriter,
  type Members,
  short,
  withBytes,
  withHeader,
  withoutQuery,
  withQuery,
  withSegment,
  type Writer
} from "./RequestWriter.ts"
import type { SeededRandom } from "./SeededRandom.ts"

const hopelessPaths = ({ method, odd, pathFields, random }: Writer): ReadonlyArray<Case> =>
  pathFields.filter((parameter) => !isFree(parameter)).flatMap(({ name }) =>
    random.some(40, segments)
      // Something may have a small number.
      .filter((segment) => !/^(?:batch|bulk|firmware|group|job|task)_id$/.test(name) || !/^\d{1,9}$/.test(segment))
      // A route of its own may be found where a segment is left out.
      .filter((segment) => method !== "GET" || !["", ".", "..", "#fragment"].includes(segment))
      .map((segment) => odd(`${name} ${short(segment)}`, withSegment(name, segment), true))
  )

const hopelessQueries = ({ odd, queryFields, random, secured, suggest }: Writer): ReadonlyArray<Case> =>
  queryFields.flatMap(({ name, required, schema }) => {
    const misfits = [...random.some(30, texts), ...JsonSchema.bounds(schema).map(String)].filter((text) =>
      // An empty parameter that may be left out counts as left out.
      !JsonSchema.fitsAsText(schema, text) && (required || text !== "") && (secured || isWellFormed(text))
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
  // Who asks to wait for an event may wait for as long.
  ...queryFields.filter(({ name }) => !isClaim(name) && name !== "wait").flatMap(({ name, schema }) =>
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
