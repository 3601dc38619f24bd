/**
 * What is wrong with the answers of the API, and what they have changed.
 */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { declares, type Operation } from "./ApiDescription.ts"
import type * as RawRequest from "./RawRequest.ts"
import { type Case, describe, type Given } from "./RequestWriter.ts"

/** The same seed makes the same requests. */
export const seed = 20_261_121

/** Requests under way at the same time. */
export const concurrency = 16

/** What is no JSON where all went well: files, lists of triples, exports of the audit log, streams of events. */
const isPlain = /^(?:text\/csv|text\/event-stream|application\/(?:octet-stream|x-ndjson))/

/** What is wrong with an answer. */
export const complaintsOf = (made: Case, { headers, status, text }: RawRequest.RawAnswer): ReadonlyArray<string> => {
  const complaints: Array<string> = []
  const expect = (holds: boolean, what: string) => {
    if (!holds) complaints.push(`${what}: ${status} ${text.slice(0, 500)} TO ${describe(made)}`)
  }
  expect(status !== 0, "there was no answer")
  if (status === 0) return complaints
  expect(status < 500, "the server failed")
  expect(headers["x-request-id"] !== undefined, "there is no request id")
  expect(!/node_modules|\.ts:\d+/.test(text), "inner details are told")
  if (made.hopeless) expect(status >= 400, "it was taken")
  if (status === 429) expect(headers["retry-after"] !== undefined, "there is no time to try again")
  if (status === 405) expect(headers["allow"] !== undefined, "the allowed methods are not told")
  if (made.request.method === "HEAD" || status === 304) {
    expect(text === "", "there is a body")
    return complaints
  }
  const mediaType = String(headers["content-type"])
  if (status < 300 && isPlain.test(mediaType)) return complaints
  expect(mediaType.startsWith("application/json"), "it is no JSON")
  if (complaints.length > 0) return complaints
  const body = JSON.parse(text)
  expect(Number.isInteger(body.code), "there is no code")
  expect(typeof body.message === "string" && body.message !== "", "there is no message")
  expect(status < 400 ? body.code === 0 : Math.floor(body.code / 100) === status, "code and status differ")
  // A message may carry the signature of another device.
  if (made.signed && body.data?.device_code === undefined) {
    expect(body.code !== 40110, "a right signature is taken for a wrong one")
  }
  if (body.code === 40001 && body.data?.device_code === undefined) {
    const issues = Object.values(body.data?.issues ?? {})
    expect(issues.length > 0 && issues.every((messages) => Array.isArray(messages)), "no field is named")
  }
  return complaints
}

/** A failure that the description of an operation lacks. An odd value can turn a path into that of another operation. */
export const undeclaredBy = (
  operation: Operation | undefined,
  made: Case,
  { status, text }: RawRequest.RawAnswer
): ReadonlyArray<string> => {
  if (operation === undefined || status < 400 || made.request.method === "HEAD") return []
  const body = JSON.parse(text)
  return body.code === 40400 || body.code === 40500 || declares(operation, status, body)
    ? []
    : [`the failure is not declared: ${status} ${text.slice(0, 500)} TO ${describe(made)}`]
}

/** All that the API shows of two projects, and of projects; by where it shows it. */
export const snapshot = Effect.fnUntraced(function*(send: RawRequest.Send, { admin, foreign, owner }: Given["keys"]) {
  const seen = new Map<string, string>()
  // A device over HTTP that says nothing more is offline after some minutes.
  const note = (path: string, value: unknown) =>
    seen.set(path, JSON.stringify(value).replaceAll("\"status\":\"offline\"", "\"status\":\"online\""))
  const read = Effect.fnUntraced(function*(path: string, key: string) {
    const { status, text } = yield* send({
      method: "GET",
      path: `/openapi/v1${path}`,
      headers: { authorization: `Bearer ${key}` }
    })
    assert.strictEqual(status, 200, `${path} ${text}`)
    return JSON.parse(text).data
  })
  const all = Effect.fnUntraced(function*(path: string, key: string) {
    const items: Array<Readonly<Record<string, string>>> = []
    for (let page = 1, pages = 1; page <= pages; page++) {
      const data = yield* read(`${path}?page=${page}&page_size=100`, key)
      items.push(...data.results)
      pages = data.pages
    }
    return items
  })
  for (const project of yield* all("/projects", owner)) note(`/projects/${project["id"]}`, project)
  for (const key of [admin, foreign]) {
    const products = yield* all("/products", key)
    const devices = yield* all("/things", key)
    for (const accessKey of yield* all("/access-keys", key)) {
      // A use is no change.
      note(`/access-keys/${accessKey["id"]}`, { ...accessKey, last_used_at: "" })
    }
    for (const product of products) note(`/products/${product["product_key"]}`, product)
    for (const device of devices) note(`/things/${device["device_id"]}`, device)
    const noteOf = (path: string) => Effect.map(read(path, key), (data) => note(path, data))
    yield* Effect.forEach(products, ({ product_key }) => noteOf(`/products/${product_key}/thing-model/versions`), {
      concurrency
    })
    const scenes = yield* all("/rule-engine/scenes", key)
    for (const scene of scenes) note(`/rule-engine/scenes/${scene["id"]}`, scene)
    note("/rule-engine/webhook-key", yield* read("/rule-engine/webhook-key", key))
    const firmwares = yield* all("/ota/firmwares", key)
    for (const firmware of firmwares) note(`/ota/firmwares/${firmware["id"]}`, firmware)
    yield* Effect.forEach(firmwares, ({ id }) =>
      Effect.gen(function*() {
        note(`/ota/firmwares/${id}/upgrade-tasks`, yield* all(`/ota/firmwares/${id}/upgrade-tasks`, key))
        yield* noteOf(`/ota/firmwares/${id}/verify-task`)
      }), { concurrency })
    for (const network of yield* all("/mesh/networks", key)) {
      const path = `/mesh/networks/${network["network_key"]}`
      note(path, network)
      note(`${path}/nodes`, yield* all(`${path}/nodes`, key))
    }
    yield* Effect.forEach(devices, ({ device_id }) =>
      Effect.gen(function*() {
        yield* noteOf(`/things/${device_id}/shadow`)
        yield* noteOf(`/things/${device_id}/events`)
        // Their states change with time.
        const messages = yield* all(`/things/${device_id}/messages`, key)
        note(`/things/${device_id}/messages`, messages.map(({ message_id }) => message_id))
      }), { concurrency })
  }
  return seen
})

/** What two snapshots show differently. */
export const differences = (before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>) =>
  [...new Set([...before.keys(), ...after.keys()])]
    .filter((path) => before.get(path) !== after.get(path))
    .map((path) => `${path}: ${before.get(path)} BECAME ${after.get(path)}`)

/** Fails with the first of the complaints if there are any. */
export const assertNone = (complaints: ReadonlyArray<string>) =>
  assert.isEmpty(complaints, `${complaints.length} of them:\n${complaints.slice(0, 25).join("\n")}\n`)

/** A request that no description has made. */
export const caseOf = (
  method: string,
  path: string,
  headers: RawRequest.RawRequest["headers"] = {},
  body?: string
): Case => ({
  operation: `${method} ${path}`,
  oddity: "",
  request: { method, path, headers, body: body === undefined ? undefined : Buffer.from(body) },
  hopeless: false,
  signed: false
})
