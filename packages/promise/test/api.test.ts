import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Redacted } from "effect"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { Readable } from "node:stream"
import { afterAll, assert, beforeAll, expect, expectTypeOf, it, vi } from "vitest"
import { type Api, CloudError, type CloudWithObjects, connect, startCloud } from "../src/index.ts"

let cloud: CloudWithObjects
let server: Server
let baseUrl: string
let api: Api

beforeAll(async () => {
  cloud = await startCloud({
    storage: StorageMemory.layer,
    platform: PlatformNode.layer,
    objects: PlatformNode.MemoryObjectStore.layer
  })
  const handle = await cloud.fetchHandler()
  server = createServer(async (request, response) => {
    const hasBody = request.method !== "GET" && request.method !== "HEAD"
    const reply = await handle(
      new Request(`http://${request.headers.host}${request.url}`, {
        method: request.method!,
        headers: Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]),
        ...hasBody ? { body: Readable.toWeb(request) as ReadableStream, duplex: "half" as const } : {}
      }),
      { address: request.socket.remoteAddress! }
    )
    response.writeHead(reply.status, Object.fromEntries(reply.headers))
    response.end(Buffer.from(await reply.arrayBuffer()))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { key } = await cloud.accessKeys.create("default", { name: "Tests", role: "admin" })
  api = connect({ baseUrl, accessKey: key })
})

afterAll(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  await cloud.close()
})

const createLamp = async () => {
  const { product_info: { product_key } } = await api.products.createProduct({
    payload: {
      name: "Lamp",
      node_type: "direct",
      network_type: "wifi",
      validate_type: "weak",
      data_format: "json",
      auth_type: "secret"
    }
  })
  return api.devices.createDevice({ params: { product_key }, payload: { nickname: "Desk" } })
}

const rejected = async (promise: Promise<unknown>): Promise<CloudError> => {
  const error = await promise.then(() => assert.fail("the call is not rejected"), (error: unknown) => error)
  assert(error instanceof CloudError)
  return error
}

it("an id that is empty or dots never leads to another operation", async () => {
  const { device_id } = await createLamp()
  for (const serial of ["", ".", ".."]) {
    const error = await api.certificates.revokeCertificate({ params: { device_id, serial } }).catch(String)
    // Effect 4.1 refuses dots itself.
    assert.match(String(error), /Expected ids that are not empty|Invalid path parameter/)
  }
  assert.strictEqual((await rejected(api.devices.getDevice({ params: { device_id: "" } }))).code, "SchemaError")
  const { device_info } = await api.devices.getDevice({ params: { device_id } })
  assert.strictEqual(device_info.device_id, device_id)
})

it("operations give the data of their responses; empty parts of requests may be left out", async () => {
  const { device_id } = await createLamp()
  const { results } = await api.devices.listDevices()
  assert.include(results.map((device) => device.device_id), device_id)
  const page = await api.devices.listDevices({ query: { page_size: 1 } })
  expectTypeOf(page.total).toEqualTypeOf<number>()
  assert.strictEqual(page.results.length, 1)
  assert.isUndefined(await api.devices.deleteDevice({ params: { device_id: device_id } }))
})

it("types: requests that do not fit are refused", async () => {
  // @ts-expect-error a device needs an id
  const missing = await rejected(api.devices.getDevice())
  assert.deepStrictEqual([missing.code, missing.message], ["SchemaError", `Missing key\n  at ["device_id"]`])
  // @ts-expect-error there is no such status
  await rejected(api.devices.listDevices({ query: { status: "asleep" } }))
  // @ts-expect-error there is no such operation
  assert.isUndefined(api.devices.explodeDevice)
  // @ts-expect-error a promise of the stream of events would never resolve
  assert.isUndefined(api.events)
})

it("a refusal rejects with the code of the response, and its data", async () => {
  const missing = await rejected(api.devices.getDevice({ params: { device_id: "nowhere" } }))
  assert(missing.code === 40402)
  assert.strictEqual(missing.message, "There is no device nowhere")

  const invalid = await rejected(
    api.subscriptions.createSubscription({ payload: { name: "x", webhook: { url: "no" } } })
  )
  assert(invalid.code === 40001)
  expectTypeOf(invalid.data.issues).toExtend<Readonly<Record<string, ReadonlyArray<string>>>>()
  assert.property(invalid.data.issues, "webhook.url")

  const unknown = connect({ baseUrl, accessKey: "dck_unknown" })
  assert.strictEqual((await rejected(unknown.devices.listDevices())).code, 40100)
})

it("a server that is away rejects with a code of its own, and no key is in the error", async () => {
  const away = connect({ baseUrl: "http://127.0.0.1:9", accessKey: "dck_secret" })
  const error = await rejected(away.devices.listDevices())
  assert.strictEqual(error.code, "HttpClientError")
  const { inspect } = await import("node:util")
  assert.notInclude(inspect(error, { depth: 9 }), "dck_secret")
})

it("a subscription gives events over HTTP, and again those that were not acknowledged", async () => {
  const { device_id } = await createLamp()
  const actions = async (count: number): Promise<Array<string>> => {
    const seen: Array<string> = []
    const options = { filter: { types: ["lifecycle"], device_ids: [device_id] }, start: "earliest" } as const
    for await (const event of api.subscribe("switches", { ...options, limit: 2 })) {
      if (event.type === "lifecycle") seen.push(event.data.action)
      if (seen.length === count) break
    }
    return seen
  }
  const waiting = actions(3)
  await api.devices.changeDeviceStatus({ params: { device_id }, payload: { action: "disable" } })
  await api.devices.changeDeviceStatus({ params: { device_id }, payload: { action: "enable" } })
  assert.deepStrictEqual(await waiting, ["create", "disable", "enable"])
  assert.deepStrictEqual(await actions(1), ["enable"])
})

it("a loop goes on when the server goes in the middle of a response", async () => {
  const { device_id } = await createLamp()
  const options = { filter: { types: ["lifecycle"], device_ids: [device_id] }, start: "earliest" } as const
  let broken = 0
  const breaking = createServer(async (request, response) => {
    if (!request.url!.includes("/events") || broken++ > 0) {
      const body = request.method === "POST"
        ? { body: Readable.toWeb(request) as ReadableStream, duplex: "half" as const }
        : {}
      const reply = await fetch(`${baseUrl}${request.url}`, {
        method: request.method!,
        headers: { authorization: request.headers.authorization!, "content-type": "application/json" },
        ...body
      })
      response.writeHead(reply.status, { "content-type": "application/json" })
      return void response.end(Buffer.from(await reply.arrayBuffer()))
    }
    response.writeHead(200, { "content-type": "application/json", "content-length": 100 })
    response.write(`{"code":0,`, () => response.destroy())
  })
  await new Promise<void>((resolve) => breaking.listen(0, "127.0.0.1", resolve))
  const { key } = await cloud.accessKeys.create("default", { name: "Loop", role: "admin" })
  const through = connect({ baseUrl: `http://127.0.0.1:${(breaking.address() as AddressInfo).port}`, accessKey: key })
  for await (const event of through.subscribe(crypto.randomUUID(), options)) {
    assert.strictEqual(event.type, "lifecycle")
    break
  }
  assert.isAbove(broken, 1)
  breaking.closeAllConnections()
  breaking.close()
})

it("the API of a cloud that is closed takes no requests, and its streams have ended", async () => {
  const closing = await startCloud({
    storage: StorageMemory.layer,
    platform: PlatformNode.layer,
    objects: PlatformNode.MemoryObjectStore.layer
  })
  const handle = await closing.fetchHandler()
  const { key } = await closing.accessKeys.create("default", { name: "Tests", role: "viewer" })
  const request = new Request("http://localhost/openapi/v1/events", { headers: { authorization: `Bearer ${key}` } })
  const events = (await handle(request)).body!.getReader()
  await events.read()
  const next = events.read()
  await closing.close()
  assert.isTrue((await next).done)
  const late = await handle(new Request("http://localhost/healthz")).catch((error: unknown) => error)
  assert.deepInclude(late, { message: "The cloud is closed" })
})

it("what is no address, and no key, is refused at once", () => {
  for (
    const baseUrl of [
      "127.0.0.1:8080",
      "localhost:8080",
      "ftp://localhost",
      "http://u:p@localhost",
      "http://localhost?a=1"
    ]
  ) {
    assert.throws(() => connect({ baseUrl, accessKey: "dck_x" }), /^baseUrl: expected a URL/)
  }
  const wrong = ["", " ", "dck_…", "dck_x\ndck_y", "\uFEFFdck_x", "\ndck_x", "dck_x\f"]
  for (const accessKey of [undefined as never, Redacted.make("dck_…"), ...wrong]) {
    assert.throws(() => connect({ baseUrl: "http://127.0.0.1:8080", accessKey }), /^accessKey: /)
  }
  connect({ baseUrl: "https://cloud.example.com", accessKey: "dck_x\n" })
})

it("each signal that was given ends the calls", async () => {
  const [first, second] = [new AbortController(), new AbortController()]
  const both = api.withSignal(first.signal).withSignal(second.signal)
  first.abort(new Error("first"))
  const reason = await both.devices.listDevices().then(() => assert.fail("the call is not rejected"), String)
  assert.strictEqual(reason, "Error: first")
})

it("Node.js does not warn of the listeners of many calls at once with one signal", async () => {
  const warnings: Array<string> = []
  const note = ({ name }: Error) => warnings.push(name)
  process.on("warning", note)
  const { signal } = new AbortController()
  const calls = Array.from({ length: 11 }, () => api.withSignal(signal).devices.listDevices())
  assert.lengthOf(await Promise.all(calls), 11)
  await new Promise(setImmediate)
  process.off("warning", note)
  assert.deepStrictEqual(warnings, [])
})

it("loops that begin at the same moment read one subscription", async () => {
  const controller = new AbortController()
  const name = crypto.randomUUID()
  const loops = ["a", "b", "c"].map((worker) =>
    api.withSignal(controller.signal).subscribe(name, { worker })[Symbol.asyncIterator]().next()
  )
  const ends = Promise.allSettled(loops)
  await vi.waitUntil(async () => {
    const { results } = await api.subscriptions.listSubscriptions()
    const shared = results.find((subscription) => subscription.name === name)
    if (shared === undefined) return false
    const params = { subscription_id: shared.subscription_id }
    return (await api.subscriptions.getSubscription({ params })).workers.length === loops.length
  }, { timeout: 30_000 })
  const reason = new Error("Enough")
  controller.abort(reason)
  assert.deepStrictEqual(await ends, loops.map(() => ({ status: "rejected", reason })))
})

it("an aborted signal ends calls and loops with its reason", async () => {
  const controller = new AbortController()
  const next = api.withSignal(controller.signal).subscribe("never")[Symbol.asyncIterator]().next()
  const reason = new Error("Enough")
  controller.abort(reason)
  await expect(next).rejects.toBe(reason)
})

it("a loop on a server that does not know the key rejects at once", async () => {
  const unknown = connect({ baseUrl, accessKey: "dck_unknown" })
  const error = await rejected(unknown.subscribe("mine")[Symbol.asyncIterator]().next())
  assert.strictEqual(error.code, 40100)
})
