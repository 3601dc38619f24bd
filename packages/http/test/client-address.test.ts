import { addressGroup, KnownAddresses, parseTrustedProxies, TrustedProxies } from "@device-cloud/core"
import { ManagementApi } from "@device-cloud/http"
import {
  call,
  createDevice,
  createProduct,
  type DeviceTriple,
  ownerKey,
  signedQuery,
  testApi,
  uplink
} from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { storages } from "../../../vitest.storages.ts"

const proxies = Result.getOrThrow(parseTrustedProxies(["127.0.0.1", "10.0.0.0/8"]))

const createTriple = Effect.flatMap(
  createProduct(),
  ({ product_key }) =>
    Effect.map(
      createDevice(product_key),
      (created) => created as unknown as DeviceTriple & { readonly device_id: string }
    )
)

/** The code with which an uplink from behind a proxy is answered. */
const postFrom = (device: DeviceTriple, forwarded: string) =>
  Effect.map(
    uplink(device, "PostProperty", { body: { params: {} }, headers: { "x-forwarded-for": forwarded } }),
    ({ body }) => body.code
  )

const ipOf = (deviceId: string) =>
  Effect.map(call("GET", `/things/${deviceId}/detail`), ({ body }) => body.data.device_info.ip as string)

const memory = storages[0][1]

layer(
  testApi(memory, { rateLimits: { address: "1000:60" } }).pipe(Layer.provide(Layer.succeed(TrustedProxies, proxies))),
  {
    excludeTestServices: true
  }
)("behind a trusted proxy", (it) => {
  it.effect("the client is the last one that is no proxy, and alone pays for its wrong signatures", () =>
    Effect.gen(function*() {
      const device = yield* createTriple
      const wrong = { ...device, device_secret: "wrong" }
      for (let i = 0; i < 10; i++) {
        // What the client itself says about its address does not help it.
        assert.strictEqual(yield* postFrom(wrong, `192.0.2.${i}, 198.51.100.1, 10.0.0.7`), 40110)
      }
      assert.strictEqual(yield* postFrom(device, "198.51.100.1"), 42900)
      assert.strictEqual(yield* postFrom(device, "198.51.100.1, 198.51.100.2:4711"), 0)
      assert.strictEqual(yield* ipOf(device.device_id), "198.51.100.2")
      assert.strictEqual(yield* postFrom(device, "[2001:db8::1]:443"), 0)
      assert.strictEqual(yield* ipOf(device.device_id), "2001:db8::1")
      assert.strictEqual(yield* postFrom(device, "nobody"), 0)
      assert.strictEqual(yield* ipOf(device.device_id), "127.0.0.1")
    }))

  it.effect("an address is known when an access key or a device was authenticated from it", () =>
    Effect.gen(function*() {
      const known = yield* KnownAddresses
      const device = yield* createTriple
      const ask = (forwarded: string, key: string | null, path = "/products") =>
        call("GET", path, { key, headers: { "x-forwarded-for": forwarded } })
      yield* ask("203.0.113.1", ownerKey)
      yield* ask("203.0.113.2", null, "//healthz")
      yield* ask("203.0.113.3", ownerKey.replace("000", "001"))
      yield* postFrom(device, "203.0.113.4")
      yield* postFrom({ ...device, device_secret: "wrong" }, "203.0.113.5")
      yield* postFrom(device, "2001:db8:7::1")
      assert.deepStrictEqual(
        [1, 2, 3, 4, 5].map((i) => known.has(`203.0.113.${i}`)),
        [true, false, false, true, false]
      )
      assert.isTrue(known.has(addressGroup("2001:db8:7::2")))
    }))

  it.effect("addresses of objects are those of the way to the client", () =>
    Effect.gen(function*() {
      const upload = (headers: Readonly<Record<string, string>>) =>
        Effect.map(
          call("POST", "/oss", {
            raw: "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nhello\r\n--b--\r\n",
            headers: { "content-type": "multipart/form-data; boundary=b", host: "cloud.example.com", ...headers }
          }),
          ({ body, text }) => JSON.stringify(body.data ?? text)
        )
      assert.include(yield* upload({ "x-forwarded-proto": "https" }), "https://cloud.example.com/")
      assert.include(yield* upload({}), "http://cloud.example.com/")
    }))
})

layer(
  testApi(memory, { rateLimits: { address: "5:600" } }).pipe(Layer.provide(Layer.succeed(TrustedProxies, proxies))),
  { excludeTestServices: true }
)("beside a limit of requests of an address", (it) => {
  it.effect("a balancer asks after the health of the server as often as it likes", () =>
    Effect.gen(function*() {
      const ask = (path: string, headers: Readonly<Record<string, string>> = {}) =>
        Effect.map(call("GET", path, { headers }), ({ status }) => status)
      for (let i = 0; i < 10; i++) {
        assert.strictEqual(yield* ask("//healthz"), 200)
        assert.strictEqual(yield* ask("//readyz"), 200)
      }
      for (let i = 0; i < 5; i++) assert.strictEqual(yield* ask("/products"), 200)
      assert.strictEqual(yield* ask("/products"), 429)
      assert.strictEqual(yield* ask("//readyz"), 200)
      assert.strictEqual(yield* ask("//nowhere"), 429)
      assert.strictEqual(yield* ask("/products", { "x-forwarded-for": "198.51.100.1" }), 200)
    }))
})

layer(testApi(memory), { excludeTestServices: true })("without trusted proxies", (it) => {
  it.effect("nobody says where a request comes from but its socket", () =>
    Effect.gen(function*() {
      const device = yield* createTriple
      assert.strictEqual(yield* postFrom(device, "198.51.100.1"), 0)
      assert.strictEqual(yield* ipOf(device.device_id), "127.0.0.1")
    }))

  it.effect("a server that mounts the API says where a request comes from", () =>
    Effect.gen(function*() {
      const handle = yield* ManagementApi.fetchHandler({ readiness: {} })
      const device = yield* createTriple
      const post = Effect.fnUntraced(function*(from: DeviceTriple, peer?: { readonly address: string }) {
        const query = new URLSearchParams(yield* signedQuery(from, "PostProperty")).toString()
        const request = new Request(`http://localhost/openapi/v1/thing-uplink?${query}`, {
          method: "POST",
          headers: { "content-type": "application/json", "x-forwarded-for": "192.0.2.77" },
          body: "{\"params\":{}}"
        })
        const response = yield* Effect.promise(() => handle(request, peer))
        const body = yield* Effect.promise(() => response.json())
        return (body as { readonly code: number }).code
      })
      const address = "198.51.100.9"
      for (let i = 0; i < 10; i++) {
        assert.strictEqual(yield* post({ ...device, device_secret: "wrong" }, { address }), 40110)
      }
      assert.strictEqual(yield* post(device, { address }), 42900)
      assert.strictEqual(yield* post(device, { address: "198.51.100.8" }), 0)
      assert.strictEqual(yield* ipOf(device.device_id), "198.51.100.8")
      assert.strictEqual(yield* post(device), 0)
      const listed = yield* Effect.promise(() =>
        handle(
          new Request("http://localhost/openapi/v1/products", { headers: { authorization: `Bearer ${ownerKey}` } })
        )
      )
      assert.strictEqual(listed.status, 200)
    }))
})
