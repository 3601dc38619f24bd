import { parseTrustedProxies, TrustedProxies } from "@device-cloud/core"
import { call, createDevice, createProduct, type DeviceTriple, testApi, uplink } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { storages } from "../../../vitest.storages.ts"

const memory = storages[0][1]
const origin = "https://console.example.com"

const proxies = Layer.succeed(TrustedProxies, Result.getOrThrow(parseTrustedProxies(["127.0.0.1"])))

layer(testApi(memory, { corsOrigins: [origin], secureDevices: true }).pipe(Layer.provide(proxies)), {
  excludeTestServices: true
})("who may speak to the API, and how", (it) => {
  it.effect("a page of a configured origin asks, calls and reads; another one does not", () =>
    Effect.gen(function*() {
      const ask = (from: string) =>
        call("OPTIONS", "/products", {
          key: null,
          headers: { origin: from, "access-control-request-method": "POST" }
        })
      const allowed = yield* ask(origin)
      assert.strictEqual(allowed.status, 204)
      assert.strictEqual(allowed.headers["access-control-allow-origin"], origin)
      assert.include(String(allowed.headers["access-control-allow-headers"]), "Authorization")
      assert.include(String(allowed.headers["access-control-allow-methods"]), "DELETE")
      const other = yield* ask("https://evil.example.com")
      assert.strictEqual(other.status, 405)
      assert.isUndefined(other.headers["access-control-allow-origin"])

      const list = yield* call("GET", "/products", { headers: { origin } })
      assert.strictEqual(list.headers["access-control-allow-origin"], origin)
      assert.strictEqual(list.headers["vary"], "Origin")
      const refused = yield* call("GET", "/products", { key: null, headers: { origin } })
      assert.deepStrictEqual([refused.status, refused.headers["access-control-allow-origin"]], [401, origin])
      const elsewhere = yield* call("GET", "/products", { headers: { origin: `${origin}.evil.com` } })
      assert.isUndefined(elsewhere.headers["access-control-allow-origin"])
    }))

  it.effect("a path has one spelling", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* call("GET", "/products")).status, 200)
      for (const path of ["/Products", "//OpenAPI/v1/products", "//openapi/v1//products", "//Healthz"]) {
        const { body, status } = yield* call("GET", path)
        assert.deepStrictEqual([status, body.code], [404, 40400], path)
      }
    }))

  it.effect("the root leads to the documentation", () =>
    Effect.gen(function*() {
      const root = yield* call("GET", "//", { key: null })
      assert.deepStrictEqual([root.status, root.headers["location"]], [302, "/docs"])
    }))

  it.effect("devices speak plain HTTP from this machine only", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const device = (yield* createDevice(product_key)) as unknown as DeviceTriple
      const post = (headers: Readonly<Record<string, string>>) =>
        Effect.map(uplink(device, "PostProperty", { body: { params: {} }, headers }), ({ body }) => body.code)
      const from = { "x-forwarded-for": "198.51.100.1" }
      assert.strictEqual(yield* post({}), 0)
      assert.strictEqual(yield* post({ ...from, "x-forwarded-proto": "https" }), 0)
      assert.strictEqual(yield* post({ ...from, "x-forwarded-proto": "http" }), 40303)
      const far = { key: null, headers: from, body: {} } as const
      for (
        const path of [
          "/auth/register/device",
          "/auth/generator/device",
          "//auth/register/device",
          "//auth",
          "//%61uth",
          "//topic/a"
        ]
      ) {
        const { body, status } = yield* call("POST", path, far)
        assert.deepStrictEqual([status, body.code], [403, 40303], path)
      }
      // Management is no matter of devices.
      assert.strictEqual((yield* call("GET", "/products", { headers: from })).status, 200)
    }))
})

layer(testApi(memory, { docs: false }), { excludeTestServices: true })("by default", (it) => {
  it.effect("no page of another origin reads, and there is no root without documentation", () =>
    Effect.gen(function*() {
      const list = yield* call("GET", "/products", { headers: { origin } })
      assert.isUndefined(list.headers["access-control-allow-origin"])
      assert.strictEqual((yield* call("GET", "//", { key: null })).status, 404)
    }))
})
