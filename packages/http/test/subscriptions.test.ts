import {
  AllowPrivateWebhooks,
  defaultProjectId,
  type DeviceId,
  Devices,
  type DomainEvent,
  Feed,
  ProjectId,
  SubscriptionLease
} from "@device-cloud/core"
import { eventually, SimulatedDevice } from "@device-cloud/testing"
import {
  call,
  createDevice,
  createProduct,
  type DeviceTriple,
  ownerKey,
  testApi,
  uplink
} from "@device-cloud/testing/http"
import { assert, it, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue } from "effect"
import { HttpServer } from "effect/http"
import { createHmac } from "node:crypto"
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as httpRequest,
  type Server
} from "node:http"
import type { AddressInfo } from "node:net"
import { storages } from "../../../vitest.storages.ts"
import * as OpenReads from "../src/subscription/OpenReads.ts"

interface Delivered {
  readonly id: string
  readonly type: string
  // oxlint-disable-next-line no-explicit-any -- a test looks into whatever came
  readonly data: any
}

const data = (method: string, path: string, body?: object) =>
  Effect.map(call(method, path, { body }), (response) => {
    assert.strictEqual(response.body.code, 0, response.body.message)
    return response.body.data
  })

const code = (method: string, path: string, body?: object) =>
  Effect.map(call(method, path, { body }), (response) => response.body.code)

/** The next `count` events of the stream. */
const streamed = Effect.fnUntraced(function*(path: string, count: number, lastEventId?: string) {
  const { address } = yield* HttpServer.HttpServer
  return yield* Effect.promise(async () => {
    const stop = new AbortController()
    const response = await fetch(`${HttpServer.formatAddress(address)}/openapi/v1${path}/events`, {
      headers: {
        authorization: `Bearer ${ownerKey}`,
        accept: "text/event-stream",
        ...lastEventId === undefined ? {} : { "last-event-id": lastEventId }
      },
      signal: stop.signal
    })
    assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/)
    const events: Array<Delivered> = []
    let text = ""
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      const blocks = (text + chunk).split("\n\n")
      text = blocks.pop()!
      for (const block of blocks) {
        const { data, event, id } = Object.fromEntries(block.split("\n").map((line) => line.split(/: ?(.*)/s, 2)))
        if (event !== undefined) events.push({ id, type: event, data: JSON.parse(data) })
      }
      if (events.length >= count) break
    }
    stop.abort()
    return events
  })
})

let last = 0
const subscribe = (body: object = {}) => data("POST", "/subscriptions", { name: `Subscription ${++last}`, ...body })

type Device = DeviceTriple & { readonly device_id: string }

const newDevice = (
  productKey?: string
): Effect.Effect<Device, never, Effect.Services<ReturnType<typeof createDevice>>> =>
  Effect.gen(function*() {
    const product_key = productKey ?? (yield* createProduct()).product_key
    return { product_key, ...yield* createDevice(product_key) } as unknown as Device
  })

const post = (device: Device, params: object) =>
  Effect.gen(function*() {
    const body = { message_id: "1", version: "1.0", params }
    const response = yield* uplink(device, "PostProperty", { body })
    assert.strictEqual(response.status, 200, response.text)
  })

/** The values of `n` of the events. */
const numbers = (results: ReadonlyArray<Delivered>): ReadonlyArray<number> =>
  results.map(({ data }) => data.properties.n.value)

for (const [name, storage] of storages) {
  const test = testApi(storage).pipe(
    Layer.provide(Layer.succeed(AllowPrivateWebhooks, true)),
    Layer.provide(Layer.succeed(SubscriptionLease, 1000))
  )
  layer(test, { excludeTestServices: true })(`subscriptions on ${name}`, (it) => {
    it.effect("events come again until they are acknowledged, and then not", () =>
      Effect.gen(function*() {
        const device = yield* newDevice()
        const { subscription_id } = yield* subscribe({
          filter: { device_ids: [device.device_id], types: ["property"] }
        })
        const path = `/subscriptions/${subscription_id}`
        for (const n of [1, 2, 3]) yield* post(device, { n })
        const first = yield* eventually(data("GET", `${path}/events`), { until: ({ results }) => results.length === 3 })
        assert.deepStrictEqual(numbers(first.results), [1, 2, 3])
        assert.deepInclude(first.results[0].data, { device_id: device.device_id, device_name: device.device_name })
        assert.deepInclude(first, { gap: false })
        const again = yield* data("GET", `${path}/events?limit=2`)
        assert.deepStrictEqual(again.results, first.results.slice(0, 2))
        const next = yield* data("GET", `${path}/events?cursor=${again.cursor}`)
        assert.deepStrictEqual(next.results, first.results.slice(2))
        yield* call("POST", `${path}/ack`, { body: { cursor: again.cursor } })
        assert.deepStrictEqual((yield* data("GET", `${path}/events`)).results, first.results.slice(2))
        yield* call("POST", `${path}/ack`, { body: { cursor: first.cursor } })
        assert.deepStrictEqual((yield* data("GET", `${path}/events`)).results, [])
        // An earlier cursor takes nothing back.
        yield* call("POST", `${path}/ack`, { body: { cursor: again.cursor } })
        assert.deepStrictEqual((yield* data("GET", `${path}/events`)).results, [])
        yield* call("POST", `${path}/seek`, { body: { to: "earliest" } })
        assert.deepStrictEqual((yield* data("GET", `${path}/events?limit=1000`)).results, first.results)
        assert.strictEqual(yield* code("POST", `${path}/ack`, { cursor: first.cursor }), 40907)
      }))

    it.effect("an acknowledgement or a move that comes again with its Idempotency-Key changes nothing", () =>
      Effect.gen(function*() {
        const device = yield* newDevice()
        const { subscription_id } = yield* subscribe({
          filter: { device_ids: [device.device_id], types: ["property"] }
        })
        const path = `/subscriptions/${subscription_id}`
        const read = data("GET", `${path}/events`)
        const keyed = (key: string, below: string, body: object) =>
          call("POST", `${path}/${below}`, {
            body,
            headers: { "idempotency-key": `${key} of ${path}`.replaceAll(" ", "-") }
          })
        yield* post(device, { n: 1 })
        const first = yield* eventually(read, { until: ({ results }) => results.length === 1 })
        const acknowledge = keyed("ack", "ack", { cursor: first.cursor })
        assert.strictEqual((yield* acknowledge).status, 200)
        const moveBack = keyed("back", "seek", { to: "earliest" })
        assert.strictEqual((yield* moveBack).status, 200)
        const replayed = yield* read
        assert.deepStrictEqual(replayed.results, first.results)
        // Without its key it would be refused: its cursor is from before the move.
        assert.strictEqual((yield* acknowledge).status, 200)
        yield* data("POST", `${path}/ack`, { cursor: replayed.cursor })
        assert.strictEqual((yield* moveBack).status, 200)
        assert.deepStrictEqual((yield* read).results, [])
        assert.strictEqual((yield* keyed("back", "seek", { to: "now" })).body.code, 40900)
      }))

    it.effect("a report with several values of a property is read with the last of them", () =>
      Effect.gen(function*() {
        const device = yield* newDevice()
        const { subscription_id } = yield* subscribe({
          filter: { device_ids: [device.device_id], types: ["property"] }
        })
        const properties = { n: [{ value: 1, time: 1000 }, { value: 2, time: 2000 }] }
        const { device: triple } = yield* Effect.flatMap(
          Devices,
          (devices) => devices.get(defaultProjectId, { deviceId: device.device_id as DeviceId })
        )
        const simulated = yield* SimulatedDevice.connect(triple)
        assert.strictEqual((yield* simulated.postBatch({ properties })).code, 200)
        const { results } = yield* eventually(data("GET", `/subscriptions/${subscription_id}/events`), {
          until: ({ results }) => results.length === 1
        })
        assert.deepStrictEqual(results[0].data.properties, { n: { value: 2, time: 2000 } })
      }).pipe(Effect.scoped))

    it.effect("a subscription is created, read, listed, changed and deleted", () =>
      Effect.gen(function*() {
        const filter = { types: ["status", "event"], product_keys: ["x"], tags: { room: "küche" }, property_ids: ["n"] }
        const created = yield* subscribe({ name: "Billing", filter, start: 1 })
        assert.deepInclude(created, { name: "Billing", filter, webhook: null })
        const path = `/subscriptions/${created.subscription_id}`
        const detail = yield* data("GET", path)
        assert.deepInclude(detail, created)
        assert.deepInclude(detail, { workers: [], push: null })
        assert.deepInclude(detail.lag, { events: 0, oldest_at: "", oldest_age: 0, gap: false })
        const { results } = yield* data("GET", "/subscriptions?page_size=1")
        assert.deepStrictEqual(results, [created])
        assert.strictEqual(yield* code("POST", "/subscriptions", { name: "Billing" }), 40901)
        const changed = yield* data("PUT", path, { name: "Invoices", filter: {} })
        assert.deepInclude(changed, { name: "Invoices", filter: {} })
        assert.deepInclude(yield* data("GET", path), changed)
        assert.strictEqual((yield* data("GET", "/quotas")).limits.subscriptions, 100)
        yield* call("DELETE", path)
        for (
          const [method, below, body] of [["GET", ""], ["DELETE", ""], ["PUT", "", {}], ["GET", "/events"]] as const
        ) {
          assert.strictEqual(yield* code(method, `${path}${below}`, body), 40422)
        }
        assert.strictEqual(yield* code("POST", `${path}/ack`, { cursor: "1-" }), 40422)
        assert.strictEqual(yield* code("POST", `${path}/seek`, { to: "now" }), 40422)
      }))

    it.effect("says what is wrong with a subscription, and where", () =>
      Effect.gen(function*() {
        const issues = (method: string, path: string, body: object) =>
          Effect.map(call(method, path, { body }), ({ body }) => Object.keys(body.data?.issues ?? {}))
        for (
          const [body, field] of [
            [{}, "name"],
            [{ name: " " }, "name"],
            [{ name: "x", start: "tomorrow" }, "start"],
            [{ name: "x", start: -1 }, "start"],
            [{ name: "x", filter: { types: ["weather"] } }, "filter.types[0]"],
            [{ name: "x", filter: { types: [] } }, "filter.types"],
            [{ name: "x", filter: { device_ids: Array.from({ length: 1001 }, String) } }, "filter.device_ids"],
            [{ name: "x", webhook: { url: "ftp://example.com" } }, "webhook.url"]
          ] as const
        ) {
          assert.include((yield* issues("POST", "/subscriptions", body)).join(" "), field, JSON.stringify(body))
        }
        const { body: refused } = yield* call("POST", "/subscriptions", { body: { name: "x", start: "2026-11-01" } })
        assert.strictEqual(refused.message, `start: Expected "now", "earliest" or Unix milliseconds`)
        const { subscription_id } = yield* subscribe()
        const path = `/subscriptions/${subscription_id}`
        const { body: unmoved } = yield* call("POST", `${path}/seek`, { body: { to: "yesterday" } })
        assert.strictEqual(unmoved.message, `to: Expected "now", "earliest" or Unix milliseconds`)
        for (const cursor of ["x", "1", "1-x y", "-", `1-${"9".repeat(27)}`, `1-${"z".repeat(27)}`]) {
          const { body } = yield* call("GET", `${path}/events?cursor=${encodeURIComponent(cursor)}`)
          assert.deepStrictEqual([body.code, Object.keys(body.data?.issues ?? {})], [40001, ["cursor"]], cursor)
          assert.deepStrictEqual(yield* issues("POST", `${path}/ack`, { cursor }), ["cursor"])
        }
        for (const query of ["limit=0", "limit=1001", "wait=31", "wait=x", "worker=%20"]) {
          assert.strictEqual(yield* code("GET", `${path}/events?${query}`), 40001, query)
        }
        assert.strictEqual(yield* code("POST", `${path}/resume`), 40004)
      }))

    it.effect("delivers what the filter admits", () =>
      Effect.gen(function*() {
        const device = yield* newDevice()
        const tagged = yield* newDevice(device.product_key)
        yield* call("PUT", `/things/${tagged.device_id}/tags`, { body: { tags: { room: "hall", floor: "1" } } })
        const other = yield* newDevice()
        const product_keys = [device.product_key, other.product_key]
        const filters = {
          all: { product_keys },
          product: { product_keys: [device.product_key] },
          device: { device_ids: [other.device_id, tagged.device_id] },
          tags: { product_keys, tags: { room: "hall" } },
          otherTags: { product_keys, tags: { room: "hall", floor: "2" } },
          property: { product_keys, property_ids: ["n"] },
          type: { product_keys, types: ["event"] }
        }
        const ids = yield* Effect.all(
          Object.fromEntries(
            Object.entries(filters).map(([key, filter]) => [
              key,
              Effect.map(
                subscribe({ filter: key === "type" ? filter : { types: ["property"], ...filter } }),
                (created) => created.subscription_id as number
              )
            ])
          )
        )
        yield* post(device, { n: 1, other: 1 })
        yield* post(tagged, { n: 2 })
        yield* post(other, { other: 3 })
        const read = (key: keyof typeof filters) =>
          Effect.map(data("GET", `/subscriptions/${ids[key]}/events`), ({ results }) =>
            results.map(({ data }: Delivered) => [
              data.device_id,
              Object.keys(data.properties)
            ]))
        const events = [
          [device.device_id, ["n", "other"]],
          [tagged.device_id, ["n"]],
          [other.device_id, ["other"]]
        ]
        yield* eventually(read("all"), {
          until: ({ length }) =>
            length === 3
        })
        assert.deepStrictEqual(yield* read("all"), events)
        assert.deepStrictEqual(yield* read("product"), events.slice(0, 2))
        assert.deepStrictEqual(yield* read("device"), events.slice(1))
        assert.deepStrictEqual(yield* read("tags"), [events[1]])
        assert.deepStrictEqual(yield* read("otherTags"), [])
        assert.deepStrictEqual(yield* read("property"), [[device.device_id, ["n"]], events[1]])
        assert.deepStrictEqual(yield* read("type"), [])
      }))

    it.effect("waits for an event, and moves on by itself when there is nothing for it", () =>
      Effect.gen(function*() {
        const device = yield* newDevice()
        const { subscription_id } = yield* subscribe({
          filter: { device_ids: [device.device_id], types: ["property"] }
        })
        const path = `/subscriptions/${subscription_id}`
        const [{ results }] = yield* Effect.all([
          data("GET", `${path}/events?wait=20`),
          Effect.delay(post(device, { n: 1 }), "900 millis")
        ], { concurrency: 2 })
        assert.deepStrictEqual(numbers(results), [1])
        const { lag } = yield* data("GET", path)
        assert.deepInclude(lag, { events: 1, has_more: false, gap: false })
        assert.isAtLeast(lag.oldest_age, 0)
        assert.strictEqual(lag.oldest_at, new Date(results[0].data.time).toISOString())
      }))

    it.effect("a read that waits ends when its access key is removed, and tells it nothing", () =>
      Effect.gen(function*() {
        const device = yield* newDevice()
        const { subscription_id } = yield* subscribe({
          filter: { device_ids: [device.device_id], types: ["property"] }
        })
        const { id, key } = yield* data("POST", "/access-keys", { name: "reader", role: "operator" })
        const read = yield* Effect.forkChild(call("GET", `/subscriptions/${subscription_id}/events?wait=20`, { key }))
        yield* eventually(data("GET", `/subscriptions/${subscription_id}`), {
          until: ({ workers }) => workers.length === 1
        })
        yield* data("DELETE", `/access-keys/${id}`)
        const { body, status } = yield* Fiber.join(read)
        assert.deepStrictEqual([status, body.code], [401, 40100])
      }))

    it.effect("workers share the devices; who is late is replaced, and cannot acknowledge", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const devices = yield* Effect.forEach(Array.from({ length: 24 }), () => newDevice(product_key))
        const { subscription_id } = yield* subscribe({ filter: { product_keys: [product_key], types: ["property"] } })
        const path = `/subscriptions/${subscription_id}`
        const read = (worker: string) => data("GET", `${path}/events?worker=${worker}&limit=1000`)
        const shards = Effect.map(
          data("GET", path),
          ({ workers }) =>
            Object.fromEntries(workers.map((w: { worker: string; shards: number }) => [w.worker, w.shards]))
        )
        yield* read("one")
        assert.deepStrictEqual(yield* shards, { one: 16 })
        yield* read("two")
        yield* read("one")
        yield* read("two")
        assert.deepStrictEqual(yield* shards, { one: 8, two: 8 })
        for (const device of devices) yield* post(device, { n: 1 })
        yield* eventually(data("GET", path), { until: ({ lag }) => lag.events === devices.length })
        const [one, two] = yield* eventually(Effect.all([read("one"), read("two")]), {
          until: (both) => both.every(({ results }) => results.length > 0)
        })
        const idsOf = ({ results }: { readonly results: ReadonlyArray<Delivered> }): ReadonlyArray<string> =>
          results.map(({ data }: Delivered) => data.device_id)
        assert.sameMembers([...idsOf(one), ...idsOf(two)], devices.map(({ device_id }) => device_id))
        assert.strictEqual(yield* code("POST", `${path}/ack`, { worker: "one", cursor: one.cursor }), 0)
        // Two neither reads nor acknowledges any more.
        const handedOver = yield* eventually(read("one"), { until: ({ results }) => results.length > 0 })
        assert.deepStrictEqual(handedOver.results, two.results)
        assert.strictEqual(yield* code("POST", `${path}/ack`, { worker: "two", cursor: two.cursor }), 40907)
        assert.strictEqual(yield* code("POST", `${path}/ack`, { worker: "one", cursor: handedOver.cursor }), 0)
        assert.strictEqual((yield* data("GET", path)).lag.events, 0)
      }))

    it.effect("who acknowledges writes nothing into the audit log, who seeks does", () =>
      Effect.gen(function*() {
        const { subscription_id } = yield* subscribe()
        const path = `/subscriptions/${subscription_id}`
        const { cursor } = yield* data("GET", `${path}/events`)
        yield* call("POST", `${path}/ack`, { body: { cursor } })
        yield* call("POST", `${path}/seek`, { body: { to: "now" } })
        const { results } = yield* data("GET", `/audit?resource=${subscription_id}`)
        assert.deepStrictEqual(
          results.map(({ action, resource_kind }: Record<string, string>) => [action, resource_kind]),
          [["subscriptions.seekSubscription", "subscription"], ["subscriptions.createSubscription", "subscription"]]
        )
      }))

    it.effect("streams events as they happen, and goes on where the client was", () =>
      Effect.gen(function*() {
        const device = yield* newDevice()
        const { subscription_id } = yield* subscribe({
          filter: { device_ids: [device.device_id], types: ["property"] }
        })
        const path = `/subscriptions/${subscription_id}`
        for (const n of [1, 2]) yield* post(device, { n })
        const [first] = yield* Effect.all([
          streamed(path, 3),
          Effect.delay(post(device, { n: 3 }), "300 millis")
        ], { concurrency: 2 })
        assert.deepStrictEqual(numbers(first), [1, 2, 3])
        assert.deepStrictEqual(first.map(({ type }) => type), ["property", "property", "property"])
        yield* post(device, { n: 4 })
        assert.deepStrictEqual(numbers(yield* streamed(path, 2, first[1]!.id)), [3, 4])
        // Nothing was acknowledged. An empty id says that the client has had no event yet.
        for (const id of [undefined, ""]) {
          assert.deepStrictEqual(numbers(yield* streamed(path, 4, id)), [1, 2, 3, 4])
        }
        yield* call("POST", `${path}/ack`, { body: { cursor: first[2]!.id } })
        const [event] = yield* streamed(path, 1)
        assert.deepStrictEqual(numbers([event!]), [4])
        const { results } = yield* data("GET", `${path}/events`)
        assert.strictEqual(event!.id.split("-")[1], results[0].id)
        const missing = yield* call("GET", "/subscriptions/999999/events", { headers: { accept: "text/event-stream" } })
        assert.strictEqual(missing.body.code, 40422)
      }))

    it.effect("streams end when their access key is removed, also for a client that does not read", () =>
      Effect.gen(function*() {
        const device = yield* newDevice()
        const { subscription_id } = yield* subscribe({
          filter: { device_ids: [device.device_id], types: ["property"] }
        })
        const { id, key } = yield* data("POST", "/access-keys", { name: "k", role: "operator" })
        const url = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
        const open = (worker: string) =>
          Effect.callback<IncomingMessage>((resume) => {
            httpRequest(`${url}/openapi/v1/subscriptions/${subscription_id}/events?worker=${worker}`, {
              agent: false,
              headers: { authorization: `Bearer ${key}`, accept: "text/event-stream" }
            }, (response) => {
              response.on("error", () => {})
              resume(Effect.succeed(response))
            }).end()
          })
        const closed = (response: IncomingMessage) =>
          Effect.callback<void>((resume) => void response.once("close", () => resume(Effect.void)))
        const feed = yield* Feed
        const event = {
          _tag: "PropertiesReported",
          at: Date.now(),
          device: {
            projectId: defaultProjectId,
            productKey: device.product_key,
            deviceId: device.device_id,
            deviceName: device.device_name
          },
          properties: { text: { value: "x".repeat(200_000), time: 1 } },
          earlier: []
        } as unknown as DomainEvent
        // Far more than sockets and kernels keep.
        for (let i = 0; i < 60; i++) yield* feed.append([event])
        const stuck = yield* open("default")
        yield* Effect.promise(() => new Promise((resolve) => stuck.once("readable", resolve)))
        const reading = yield* open("other")
        reading.resume()
        const told = yield* Effect.forkChild(closed(reading), { startImmediately: true })
        yield* Effect.sleep("1 second")
        yield* call("DELETE", `/access-keys/${id}`)
        yield* Fiber.join(told)
        assert.isTrue(reading.complete)
        yield* Effect.sleep("1 second")
        stuck.resume()
        yield* closed(stuck)
        assert.isFalse(stuck.complete)
      }))

    it.effect("pushes signed requests, which a receiver can check", () =>
      Effect.gen(function*() {
        const requests = yield* Queue.unbounded<{ readonly headers: IncomingHttpHeaders; readonly text: string }>()
        let status = 500
        const server = yield* Effect.acquireRelease(
          Effect.callback<Server>((resume) => {
            const server = createServer((request, response) => {
              let text = ""
              request.on("data", (chunk) => text += chunk)
              request.on("end", () => {
                Queue.offerUnsafe(requests, { headers: request.headers, text })
                response.writeHead(status).end("not yet")
                status = 204
              })
            }).listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
          }),
          (server) => Effect.sync(() => server.close())
        )
        const device = yield* newDevice()
        const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?token=1`
        const { subscription_id } = yield* subscribe({
          filter: { device_ids: [device.device_id], types: ["property"] },
          webhook: { url }
        })
        const path = `/subscriptions/${subscription_id}`
        yield* post(device, { n: 1 })
        yield* Queue.take(requests)
        const { push } = yield* eventually(data("GET", path), { until: ({ push }) => push.status === "failing" })
        assert.strictEqual(push.reason, "Answered with 500: not yet")
        const viewer = (yield* data("POST", "/access-keys", { name: "viewer", role: "viewer" })).key
        const shown = (yield* call("GET", path, { key: viewer })).body.data
        assert.strictEqual(shown.webhook.url, `${new URL(url).origin}/…`)
        assert.strictEqual(shown.push.reason, "Answered with 500")
        const { headers, text } = yield* Queue.take(requests)
        const { key } = yield* data("GET", "/rule-engine/webhook-key")
        const signature = createHmac("sha256", Buffer.from(key.slice("whsec_".length), "base64"))
          .update(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${text}`).digest("base64")
        assert.strictEqual(headers["webhook-signature"], `v1,${signature}`)
        const body = JSON.parse(text)
        assert.deepInclude(body, { subscription_id, gap: false })
        assert.deepStrictEqual(numbers(body.events), [1])
        yield* eventually(data("GET", path), { until: ({ lag, push }) => push.status === "ok" && lag.events === 0 })
        assert.strictEqual(yield* code("GET", `${path}/events`), 40004)
        assert.strictEqual(yield* code("POST", `${path}/resume`), 0)
      }).pipe(Effect.scoped))
  })
}

it.effect("streams and waiting reads are bounded, for a project and in all", () =>
  Effect.gen(function*() {
    const open = OpenReads.make()
    const isRefused = (projectId: string) =>
      Effect.match(Effect.scoped(open(ProjectId.make(projectId))), {
        onSuccess: () => false,
        onFailure: ({ code, data }) => code === 42900 && data.retry_after > 0
      })
    yield* Effect.scoped(Effect.gen(function*() {
      for (let i = 0; i < 1000; i++) {
        const projectId = `project-${Math.floor(i / 100)}`
        assert.isFalse(yield* isRefused(projectId))
        yield* open(ProjectId.make(projectId))
        assert.strictEqual(yield* isRefused("project-0"), i >= 99)
      }
      assert.isTrue(yield* isRefused("another"))
    }))
    assert.isFalse(yield* isRefused("project-0"))
    assert.isFalse(yield* isRefused("another"))
  }))
