import { ManagementApi } from "@device-cloud/http"
import * as StorageMemory from "@device-cloud/storage-memory"
import {
  call,
  createDevice,
  createProduct,
  type DeviceTriple,
  ownerKey,
  productBody,
  signedQuery,
  testApi,
  uplink
} from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { HttpServer } from "effect/http"
import { connect } from "node:net"

const newDevice = (productKey: string) =>
  Effect.map(createDevice(productKey), (device) => device as unknown as DeviceTriple)

/** Sends a request without its body; returns the first line and body of the response. */
const announce = Effect.fnUntraced(function*(path: string, headers: ReadonlyArray<string>) {
  const { address } = yield* HttpServer.HttpServer
  const { hostname, port } = new URL(HttpServer.formatAddress(address))
  return yield* Effect.callback<string>((resume) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\n${headers.join("\r\n")}\r\n\r\n`)
    })
    let text = ""
    socket.on("data", (chunk) => {
      text += String(chunk)
      if (!text.includes("}")) return
      resume(Effect.succeed(text))
      socket.destroy()
    })
    socket.on("error", () => {})
  })
})

layer(testApi(StorageMemory.layer), { excludeTestServices: true })("the size of a body", (it) => {
  it.effect("is bounded by its route, however the path is written", () =>
    Effect.gen(function*() {
      const body = { product_key: "x".repeat(20_000) }
      for (
        const path of [
          "/auth/register/device",
          "//openapi/v1/%61uth/register/device",
          "//openapi/v1/auth/regist%65r/device",
          "//openapi/v1//auth/register/device",
          "//openapi//v1/auth/register/device"
        ]
      ) {
        const { body: answer } = yield* call("POST", path, { key: null, body })
        assert.include([41_300, 40_400], answer.code, path)
      }
    }))

  it.effect("by which a browser signs in is 16 KiB, as anyone can send one", () =>
    Effect.gen(function*() {
      const { body } = yield* call("POST", "/browser-sessions", {
        key: null,
        headers: { "x-csrf-protection": "1" },
        body: { access_key: "x".repeat(20_000) }
      })
      assert.strictEqual(body.code, 41_300)
    }))

  it.effect("that is announced and never sent costs the other devices of the project nothing", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const [one, other] = [yield* newDevice(product_key), yield* newDevice(product_key)]
      const query = new URLSearchParams(yield* signedQuery(one, "PostProperty")).toString()
      const refused = yield* announce(`/openapi/v1/thing-uplink?${query}`, [
        "Content-Type: application/json",
        "Content-Length: 9000000000000000"
      ])
      assert.match(refused, /^HTTP\/1.1 413 /)
      const { body } = yield* uplink(other, "PostProperty", { body: { id: 1, params: { t: 1 } } })
      assert.strictEqual(body.code, 0)
    }))

  it.effect("of a message is 256 KiB, also if it is not announced", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const device = yield* newDevice(product_key)
      const { address } = yield* HttpServer.HttpServer
      const query = new URLSearchParams(yield* signedQuery(device, "PostProperty")).toString()
      const body = yield* Effect.promise(async () => {
        const text = JSON.stringify({ id: 1, params: { t: "x".repeat(300_000) } })
        const init = { method: "POST", body: new Blob([text]).stream(), duplex: "half" as const }
        const response = await fetch(`${HttpServer.formatAddress(address)}/openapi/v1/thing-uplink?${query}`, init)
        return await response.json() as { readonly code: number }
      })
      assert.strictEqual(body.code, 41_300)
    }))

  it.effect("holds for requests of `fetch`, of which no more is read", () =>
    Effect.gen(function*() {
      const handle = yield* ManagementApi.fetchHandler({ readiness: {} })
      const post = Effect.fnUntraced(
        function*(path: string, body: string | ReadableStream<Uint8Array>, headers: Readonly<Record<string, string>>) {
          const request = new Request(`http://localhost${path}`, {
            method: "POST",
            headers: { "content-type": "application/json", authorization: `Bearer ${ownerKey}`, ...headers },
            body,
            duplex: "half"
          })
          const response = yield* Effect.promise(() => handle(request, { address: "192.0.2.1" }))
          return ((yield* Effect.promise(() => response.json())) as { readonly code: number }).code
        }
      )
      /** A body of 4 MiB. */
      const large = () => {
        let bytes = 0
        const stream = new ReadableStream<Uint8Array>({
          pull: (controller) => {
            if (bytes === 4096 * 1024) return controller.close()
            bytes += 1024
            controller.enqueue(new Uint8Array(1024).fill(0x20))
          }
        }, { highWaterMark: 0 })
        return { stream, read: () => bytes }
      }
      const query = new URLSearchParams(
        yield* signedQuery(yield* newDevice((yield* createProduct()).product_key), "PostProperty")
      ).toString()
      for (
        const [path, limit] of [
          ["/openapi/v1/auth/register/device", 16],
          ["/openapi/v1/browser-sessions", 16],
          [`/openapi/v1/thing-uplink?${query}`, 256],
          ["/openapi/v1/products", 2048]
        ] as const
      ) {
        const { read, stream } = large()
        assert.strictEqual(yield* post(path, stream, { "x-csrf-protection": "1" }), 41_300, path)
        assert.strictEqual(read(), (limit + 1) * 1024, path)
      }
      const product = JSON.stringify({ ...productBody, name: "Fetched" })
      const pieces = new Blob([product.slice(0, 9), product.slice(9)]).stream()
      const once = { "idempotency-key": "once" }
      assert.strictEqual(yield* post("/openapi/v1/products", pieces, once), 0)
      assert.strictEqual(yield* post("/openapi/v1/products", product, once), 0)
    }))
})
