import {
  call,
  createDevice,
  createProduct,
  type DeviceTriple,
  ownerKey,
  testApi,
  uplink
} from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Queue, type Scope } from "effect"
import { HttpServer } from "effect/http"
import { type IncomingMessage, request as httpRequest } from "node:http"
import { storages } from "../../../vitest.storages.ts"

interface ServerSentEvent {
  readonly id: string
  readonly event: string
  // oxlint-disable-next-line no-explicit-any -- a test looks into whatever came
  readonly data: any
}

/** Follows the stream until the scope closes. */
const follow = Effect.fnUntraced(function*(
  query = "",
  headers: Readonly<Record<string, string>> = {}
): Effect.fn.Return<Queue.Dequeue<ServerSentEvent>, never, HttpServer.HttpServer | Scope.Scope> {
  const { address } = yield* HttpServer.HttpServer
  const received = yield* Queue.unbounded<ServerSentEvent>()
  yield* Effect.acquireRelease(
    Effect.callback<IncomingMessage>((resume) => {
      const request = httpRequest(`${HttpServer.formatAddress(address)}/openapi/v1/events${query}`, {
        agent: false,
        headers: { authorization: `Bearer ${ownerKey}`, ...headers }
      }, (response) => {
        assert.strictEqual(response.statusCode, 200)
        assert.match(String(response.headers["content-type"]), /^text\/event-stream/)
        let text = ""
        response.on("error", () => {})
        response.on("data", (chunk) => {
          text += chunk
          const blocks = text.split("\n\n")
          text = blocks.pop()!
          for (const block of blocks) {
            const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: ?(.*)/s, 2)))
            // It is heard.
            if (fields["retry"] !== undefined) resume(Effect.succeed(response))
            if (fields["event"] === undefined) continue
            const { data, event, id = "" } = fields as Record<string, string>
            Queue.offerUnsafe(received, { id: id!, event: event!, data: JSON.parse(data!) })
          }
        })
      })
      request.on("error", () => {})
      request.end()
    }),
    (response) => Effect.sync(() => response.destroy())
  )
  return received
})

const take = (events: Queue.Dequeue<ServerSentEvent>, count: number) =>
  Effect.forEach(Array.from({ length: count }), () => Queue.take(events))

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`events on ${name}`, (it) => {
    it.effect("are told as they happen, to their project, by what was asked for", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { product_key: other } = yield* createProduct()
        const all = yield* follow()
        const ofProduct = yield* follow(`?product_key=${product_key}&type=lifecycle,status`)
        const project_id = (yield* call("POST", "/projects", { body: { name: "Other" } })).body.data.id
        const { key } =
          (yield* call("POST", "/access-keys", { body: { name: "k", role: "viewer", project_id } })).body.data
        const foreign = yield* follow("", { authorization: `Bearer ${key}` })
        yield* createDevice(other)
        const { device_id, device_name } = yield* createDevice(product_key)
        const ofDevice = yield* follow(`?device_id=${device_id}`)
        yield* call("PUT", `/things/${device_id}/status`, { body: { action: "bind" } })
        yield* call("PUT", `/things/${device_id}/status`, { body: { action: "disable" } })
        const told = yield* take(ofProduct, 3)
        assert.deepStrictEqual(told.map(({ data, event }) => [event, data.action, data.device_id]), [
          ["lifecycle", "create", device_id],
          ["lifecycle", "bind", device_id],
          ["lifecycle", "disable", device_id]
        ])
        assert.deepInclude(told[0]!.data, { product_key, device_name })
        assert.isAbove(told[0]!.data.time, 1e12)
        assert.deepStrictEqual((yield* take(all, 4)).map(({ data }) => data.action), [
          "create",
          "create",
          "bind",
          "disable"
        ])
        assert.deepStrictEqual((yield* take(ofDevice, 2)).map(({ id }) => id), told.slice(1).map(({ id }) => id))
        assert.strictEqual(yield* Queue.size(foreign), 0)
      }).pipe(Effect.scoped))

    it.effect("that were missed come first, in order and once", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const path = `?product_key=${product_key}`
        const first = yield* Effect.scoped(Effect.gen(function*() {
          const events = yield* follow(path)
          for (let i = 0; i < 3; i++) yield* createDevice(product_key)
          return yield* take(events, 3)
        }))
        for (let i = 0; i < 5; i++) yield* createDevice(product_key)
        const resumed = yield* follow(path, { "last-event-id": first[1]!.id })
        yield* createDevice(product_key)
        const told = yield* take(resumed, 7)
        assert.deepStrictEqual(told[0], first[2])
        const numbers = told.map(({ id }) => Number(id.split("-")[1]))
        assert.deepStrictEqual(numbers, numbers.toSorted((a, b) => a - b))
        assert.strictEqual(new Set(numbers).size, 7)
        const unknown = yield* follow(path, { "last-event-id": "somebody-5" })
        assert.strictEqual((yield* Queue.take(unknown)).event, "gap")
      }).pipe(Effect.scoped))

    it.effect("tell of scenes, those that no device has fired too", () =>
      Effect.gen(function*() {
        const events = yield* follow("?type=scene")
        const body = { name: `Told ${name}`, status: "enable" }
        const { id } = (yield* call("POST", "/rule-engine/scenes", { body })).body.data
        const { execution_id } = (yield* call("POST", `/rule-engine/scenes/${id}/actions`)).body.data
        const { data, event } = yield* Queue.take(events)
        const { time, ...rest } = data
        assert.isAbove(time, 1e12)
        assert.deepStrictEqual([event, rest], ["scene", {
          scene_id: id,
          scene_name: body.name,
          execution_id,
          status: "succeeded",
          reason: "It was run by hand"
        }])
      }).pipe(Effect.scoped))

    it.effect("tell of upgrades, with the numbers of the API", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const device = (yield* createDevice(product_key)) as unknown as DeviceTriple & { readonly device_id: string }
        const { id } = (yield* call("POST", `/products/${product_key}/ota/firmwares`, {
          body: {
            name: "Told",
            version: "1.1.0",
            oss_path: "https://cloud.example.com/firmware.bin",
            algorithms: 1,
            hash: "93230c3bde425a9d7984a594ac55ea1e"
          }
        })).body.data
        const { task_id } =
          (yield* call("POST", `/ota/firmwares/${id}/upgrade-tasks`, { body: { scope_mode: 0 } })).body
            .data
        const events = yield* follow(`?product_key=${product_key}&type=upgrade`)
        for (const step of [40, -1]) {
          const params = { step, desc: "flash" }
          yield* uplink(device, "PostOTA", { body: { id: 1, method: "thing.ota.progress", params } })
        }
        const of = { device_id: device.device_id, task_id, module: "default", version: "1.1.0", reason: "flash" }
        for (const state of [{ status: 2, step: 40 }, { status: 4, step: -1 }]) {
          assert.deepInclude((yield* Queue.take(events)).data, { ...of, ...state })
        }
      }).pipe(Effect.scoped))

    it.effect("refuses filters that name nothing", () =>
      Effect.gen(function*() {
        const { body } = yield* call("GET", "/events?type=status,nothing")
        assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40001, ["type"]])
      }))
  })
}
