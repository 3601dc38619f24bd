/**
 * What clients send that have gone wrong, or mean harm.
 */
import type { SeededRandom } from "./SeededRandom.ts"

/** A token that JSON.stringify would not write. */
const token = (text: string): string => `\u{E000}${text}\u{E000}`

export const jsonText = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/"\u{E000}[^\u{E000}]*\u{E000}"/gu, (quoted) => JSON.parse(quoted).slice(1, -1))

const wellFormed = /^[^\p{Cs}]*$/u

/** Without halves of characters. */
export const isWellFormed = (text: string): boolean => wellFormed.test(text)

/** Text in a URL. Half a character is sent as the bytes that it would have, which are no UTF-8. */
export const encode = (text: string): string =>
  Array.from(text, (character) => isWellFormed(character) ? encodeURIComponent(character) : "%ED%A0%80").join("")

export const texts = [
  "",
  " ",
  "a",
  "e\u0301\u0323\u0327".repeat(5),
  "\u202Etxet",
  "\u05E9\u05DC\u05D5\u05DD \u0645\u0631\u062D\u0628\u0627",
  "\u{1F600}\u{1F469}\u200D\u{1F469}\u200D\u{1F467}",
  "\u{1F600}".repeat(64),
  "\u{1F600}".repeat(65),
  "\uFDFA".repeat(128),
  "\u{10FFFF}",
  "\uFFFF\uFFFE",
  "\u0130\u0131\u017F\u212A\u00DF",
  "\uFEFFtext",
  "\u2028\u2029\u0085",
  "\uD800",
  "a\uDC00b",
  "\0",
  "a\0b",
  "\u0001\u001B[31m\u007F",
  "\r\nSet-Cookie: a=b\r\n\r\n",
  "' OR '1'='1",
  "'; DROP TABLE device; --",
  "\"; DELETE FROM product; --",
  "$1",
  "E'\\x00'",
  "\\",
  "%",
  "_",
  "%_%\\%",
  "${7*7}",
  "{{7*7}}",
  "${jndi:ldap://127.0.0.1/a}",
  "../../etc/passwd",
  "..\\..\\windows",
  "<script>alert(1)</script>",
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "null",
  "undefined",
  "NaN",
  "Infinity",
  "-0",
  "0",
  "1e308",
  "1e999",
  "0x10",
  "\uFF11",
  "9".repeat(400),
  "true",
  "[object Object]",
  "{}",
  "[]",
  "key:value",
  "__proto__:value",
  "a,b;c|d&e=f?g#h/i+j",
  "x".repeat(5000)
]

/** Those that are tried everywhere. */
export const worstTexts = ["\0", "\uD800", "toString", "__proto__", "'; DROP TABLE device; --"]

/** More than a field takes, also of those that say no limit. */
export const longText = "x".repeat(300_000)

export const numbers: ReadonlyArray<unknown> = [
  0,
  -1,
  1.5,
  1e308,
  -1e308,
  5e-324,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 53 - 1,
  2 ** 53,
  2 ** 63,
  ...["-0", "0.0", "1e0", "1E+2", "1e-400", "1e999", "-1e999", "9007199254740993", "9".repeat(400)].map(token)
]

export const wrongTypes: ReadonlyArray<unknown> = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  token("1e999"),
  2 ** 53,
  "",
  "text",
  "NaN",
  [],
  [null],
  ["text"],
  {},
  { $ne: null },
  { length: 1 }
]

const nested = (levels: number, open: string, close: string) => token(open.repeat(levels) + "1" + close.repeat(levels))

/** JSON for fields that take any. */
export const documents: ReadonlyArray<unknown> = [
  ...numbers,
  ...texts.slice(0, 50),
  null,
  true,
  [],
  {},
  [null, [null, [null]]],
  nested(7, "{\"a\":", "}"),
  nested(8, "[", "]"),
  nested(9, "{\"a\":", "}"),
  nested(200, "[", "]"),
  nested(200, "{\"a\":", "}"),
  nested(2000, "[", "]"),
  nested(20_000, "[", "]"),
  nested(20_000, "{\"a\":", "}"),
  token("{\"a\":1,\"a\":2}"),
  token("{\"__proto__\":{\"polluted\":true}}"),
  { constructor: { prototype: { polluted: true } } },
  { value: 1, time: 1e308 },
  { value: "", time: -1 },
  { value: 1, time: 8.64e15 + 1 },
  Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`key${i}`, i])),
  Array.from({ length: 10_000 }, (_, i) => i),
  "x".repeat(17_000)
]

export const oddLists: ReadonlyArray<unknown> = [
  [],
  ["\0"],
  ["\uD800"],
  ["text", "text"],
  ["__proto__"],
  ["x".repeat(5000)],
  Array.from({ length: 1001 }, (_, i) => String(i))
]

/** The names of members of documents. */
export const names = ["power", ...texts.filter((text) => text.length < 1000), "x".repeat(128), "x".repeat(129)]

/** The value with one thing in it that is odd: something else, something more, or something less. */
export const altered = (value: unknown, random: SeededRandom): unknown => {
  if (typeof value !== "object" || value === null || random.chance(0.1)) return random.pick(documents)
  if (Array.isArray(value)) {
    if (value.length === 0) return [random.pick(documents)]
    const at = random.below(value.length)
    return value.map((item, i) => i === at ? altered(item, random) : item)
  }
  const members = Object.entries(value)
  const at = random.below(members.length + 1)
  const [name = random.pick(names), member = {}] = members[at] ?? []
  const others = members.filter(([other]) => other !== name)
  if (random.chance(0.1)) return Object.fromEntries(others)
  return Object.fromEntries([...others, [name, altered(member, random)]])
}

/** Segments of paths that name nothing, sent as they are. */
export const segments = [
  "",
  "%00",
  "a%00b",
  "%2f",
  "a%2fb",
  "%2F..%2F",
  "%ff",
  "%ff%fe",
  "%c0%af",
  "%ED%A0%80",
  "%",
  "%z",
  "%zz",
  "%u0041",
  "..",
  ".",
  "%2e%2e",
  "%2e",
  "~",
  "*",
  ":device_id",
  "{device_id}",
  ";",
  ";a=b",
  "%3b",
  "a+b",
  "a%20b",
  "%3Fpage=0",
  "%23",
  "#fragment",
  "__proto__",
  "constructor",
  "-1",
  "1e308",
  "9007199254740991",
  "9007199254740992",
  "99999999999999999999",
  "NaN",
  "0x7fffffff",
  ...texts.filter((text) => text !== "" && text.length < 500).map(encode),
  "x".repeat(128),
  "x".repeat(129),
  "x".repeat(10_000)
]

export const contentTypes = [
  "text/xml",
  "text/html",
  "application/xml",
  "application/x-www-form-urlencoded",
  "application/octet-stream",
  "application/cbor"
]

export const oddContentTypes = [
  "",
  "*/*",
  "json",
  "application/json; charset=utf-16",
  "application/json;;;",
  "APPLICATION/JSON",
  "application/merge-patch+json",
  "application/json, text/plain",
  "text/plain",
  "multipart/form-data",
  "multipart/form-data; boundary=",
  "multipart/form-data; boundary=x",
  "multipart/mixed; boundary=\"x",
  "x".repeat(4000)
]

export const oddHeaders: ReadonlyArray<readonly [string, Readonly<Record<string, string>>]> = [
  ["a hundred headers", Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`x-header-${i}`, "value"]))],
  ["a long header", { "x-long": "x".repeat(12_000) }],
  ["a header of bytes", { "x-bytes": "\xff\xfe\x80" }],
  ["a request id that is none", { "x-request-id": "\xff <script>" }],
  ["a long request id", { "x-request-id": "x".repeat(1000) }],
  ["a key of idempotency that is none", { "idempotency-key": " \t" }],
  ["a long key of idempotency", { "idempotency-key": "x".repeat(256) }],
  ["a key of idempotency of bytes", { "idempotency-key": "\xff" }],
  ["a key of idempotency", { "idempotency-key": "'; DROP TABLE idempotency; --".replaceAll(" ", "") }],
  ["an odd host", { host: "\"><script>alert(1)</script>" }],
  ["no host", { host: "" }],
  ["a forwarded address", { "x-forwarded-for": "'; --", "x-forwarded-host": "evil", forwarded: "for=\"_x\"" }],
  ["another method in a header", { "x-http-method-override": "DELETE" }],
  ["an encoded body that is none", { "content-encoding": "gzip" }],
  ["an unknown encoding", { "content-encoding": "br, deflate, unknown" }],
  ["an expectation", { expect: "100-continue" }],
  ["a range", { range: "bytes=0-0" }],
  ["conditions", { "if-none-match": "*", "if-modified-since": "never", "if-match": "\"x\"" }],
  ["nothing acceptable", { accept: "image/png;q=0", "accept-encoding": "identity;q=0", "accept-language": "\xff" }],
  ["cookies", { cookie: "a=b; ".repeat(200) }],
  ["another origin", { origin: "null", referer: "javascript:alert(1)" }],
  ["a trace", { traceparent: "00-00000000000000000000000000000000-0000000000000000-00", b3: "\xff" }],
  ["an odd trace", { traceparent: "ff-zz", tracestate: "=,=", b3: "0-0-0-0", "x-b3-traceid": "x" }],
  ["a connection that closes", { connection: "close" }],
  ["a body in chunks", { "transfer-encoding": "chunked" }],
  ["an event that was the last", { "last-event-id": "\xff-9e99" }]
]

export const badAuthorizations: ReadonlyArray<string | undefined> = [
  undefined,
  "",
  "Bearer",
  "Bearer ",
  "Bearer null",
  "Basic dXNlcjpwYXNz",
  `Bearer dck_${"a".repeat(12)}_${"b".repeat(43)}`,
  `Bearer dck_${"'".repeat(12)}_${"-".repeat(43)}`,
  `Bearer ${"\xff".repeat(60)}`,
  `Bearer ${"x".repeat(8000)}`
]

const boundary = "limit"

export const formType = `multipart/form-data; boundary=${boundary}`

const part = (headers: string, content: Buffer | string): Buffer =>
  Buffer.concat([
    Buffer.from(`--${boundary}\r\n${headers}\r\n\r\n`, "latin1"),
    Buffer.from(content as string),
    Buffer.from("\r\n")
  ])

const end = Buffer.from(`--${boundary}--\r\n`)

const named = (name: string) => `Content-Disposition: form-data; name="${name}"`
const file = (fileName: string, content: Buffer | string = "content", more = "") =>
  part(`${named("file")}; filename="${fileName}"${more}`, content)

/** A form as it should be. */
export const form = Buffer.concat([file("firmware.bin"), end])

/** Forms without a file, or that are no forms. */
export const brokenForms: ReadonlyArray<readonly [string, Buffer]> = [
  ["a form without parts", end],
  ["a form with another field", Buffer.concat([part(`${named("other")}; filename="a"`, "content"), end])],
  ["a form with text for a file", Buffer.concat([part(named("file"), "content"), end])],
  ["a form that does not end", file("a")],
  ["a form that ends early", form.subarray(0, -8)],
  ["a form cut in a header", form.subarray(0, 40)],
  ["a form of another boundary", Buffer.from(form.toString().replaceAll(boundary, "other"))],
  ["no form", Buffer.from("content")],
  ["an empty form", Buffer.alloc(0)],
  ["a form of NUL bytes", Buffer.alloc(1000)],
  ["JSON for a form", Buffer.from("{\"file\":\"content\"}")]
]

/** Forms that are odd. */
export const oddForms: ReadonlyArray<readonly [string, Buffer]> = [
  ...texts.map((text): readonly [string, Buffer] => [
    `a file called ${text.slice(0, 40)}`,
    Buffer.concat([file(Buffer.from(text.replaceAll(/[\r\n"]/g, "")).toString("latin1")), end])
  ]),
  ["a file without content", Buffer.concat([file("a", ""), end])],
  ["a file of a megabyte", Buffer.concat([file("a", Buffer.alloc(1024 * 1024)), end])],
  ["two files", Buffer.concat([file("a"), file("b"), end])],
  ["a hundred files", Buffer.concat([...Array.from({ length: 100 }, () => file("a")), end])],
  ["a hundred and one files", Buffer.concat([...Array.from({ length: 101 }, () => file("a")), end])],
  ["a long field", Buffer.concat([part(named("note"), "x".repeat(100_000)), file("a"), end])],
  ["a file of JSON", Buffer.concat([file("a", "{", "\r\nContent-Type: application/json"), end])],
  ["a file of a type that is none", Buffer.concat([file("a", "x", "\r\nContent-Type: ;;;"), end])],
  ["an unknown encoding", Buffer.concat([file("a", "x", "\r\nContent-Transfer-Encoding: base64"), end])],
  ["a name in another form", Buffer.concat([part(`${named("file")}; filename*=utf-8''%00%ff%E2%82%AC`, "x"), end])],
  ["a part without a name", Buffer.concat([part("Content-Disposition: form-data", "x"), file("a"), end])],
  ["a part without headers", Buffer.concat([part("X: y", "x"), file("a"), end])],
  ["a part with long headers", Buffer.concat([file("a", "x", `\r\nX: ${"y".repeat(100_000)}`), end])],
  ["a part with many headers", Buffer.concat([file("a", "x", "\r\nX: y".repeat(5000)), end])],
  ["a part of an object", Buffer.concat([part(named("__proto__"), "x"), part(named("file[0]"), "x"), file("a"), end])],
  ["text before and after", Buffer.concat([Buffer.from("before\r\n"), form, Buffer.from("after")])],
  ["a boundary in the content", Buffer.concat([file("a", `\r\n--${boundary}x\r\n--${boundary}`), end])]
]
