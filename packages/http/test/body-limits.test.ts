import * as StorageMemory from "@device-cloud/storage-memory"
import {
  call,
  createDevice,
  createProduct,
  type DeviceTriple,
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
})
