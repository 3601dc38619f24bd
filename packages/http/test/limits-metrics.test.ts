import * as StorageMemory from "@device-cloud/storage-memory"
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
import { UplinkRateLimits } from "@device-cloud/core"
import { ManagementApi } from "@device-cloud/http"
import * as PlatformNode from "@device-cloud/platform-node"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import { createServer } from "node:http"

layer(testApi(StorageMemory.layer, { rateLimits: { project: "5:60, 100:3600" } }), { excludeTestServices: true })(
  "a limit of a project",
  (it) => {
    it.effect("refuses what is too much, says when to come again, and leaves other projects alone", () =>
      Effect.gen(function*() {
        const project_id = (yield* call("POST", "/projects", { body: { name: "Other" } })).body.data.id
        const body = { name: "k", role: "viewer", project_id }
        const { key } = (yield* call("POST", "/access-keys", { body })).body.data
        for (let i = 2; i < 5; i++) assert.strictEqual((yield* call("GET", "/products")).status, 200)
        const { body: refusal, headers, status } = yield* call("GET", "/products")
        assert.deepStrictEqual([status, refusal.code], [429, 42900])
        assert.strictEqual(headers["retry-after"], String(refusal.data.retry_after))
        assert.isAtMost(refusal.data.retry_after, 60)
        assert.strictEqual((yield* call("GET", "/products", { key })).status, 200)
        assert.strictEqual((yield* call("GET", "//healthz", { key: null })).status, 200)
      }))
  }
)

layer(testApi(StorageMemory.layer, { rateLimits: { address: "3:60" } }), { excludeTestServices: true })(
  "a limit of an address",
  (it) => {
    it.effect("counts requests without a key, too", () =>
      Effect.gen(function*() {
        for (const key of [null, ownerKey, "x"]) yield* call("GET", "/products", { key })
        const { body, headers, status } = yield* call("GET", "/products")
        assert.deepStrictEqual([status, body.code], [429, 42900])
        assert.isNotEmpty(headers["x-request-id"])
        assert.isNotEmpty(headers["retry-after"])
      }))
  }
)

/** A burst of 20 messages, or of 200 kB. */
const slowDevices = Layer.succeed(UplinkRateLimits, {
  device: { messages: 10, bytes: 100_000 },
  project: { messages: 1000, bytes: 10_000_000 }
})

layer(testApi(StorageMemory.layer).pipe(Layer.provide(slowDevices)), { excludeTestServices: true })(
  "the rate of a device over HTTP",
  (it) => {
    const createTriple = Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      return (yield* createDevice(product_key)) as unknown as DeviceTriple
    })

    it.effect("refuses what is too much, says when to come again, and leaves other devices alone", () =>
      Effect.gen(function*() {
        const [loud, quiet] = [yield* createTriple, yield* createTriple]
        const post = (device: DeviceTriple) => uplink(device, "PostNTP", { body: { deviceSendTime: "1" } })
        const responses = yield* Effect.forEach(Array.from({ length: 100 }), () => post(loud), {
          concurrency: "unbounded"
        })
        const refused = responses.filter(({ status }) => status !== 200)
        assert.isAtLeast(refused.length, 20)
        for (const { body, headers, status } of refused) {
          assert.deepStrictEqual([status, body.code], [429, 42900])
          assert.strictEqual(headers["retry-after"], String(body.data.retry_after))
        }
        assert.strictEqual((yield* post(quiet)).status, 200)
      }))

    it.effect("counts bytes, also of bodies whose length is not announced", () =>
      Effect.gen(function*() {
        const device = yield* createTriple
        const query = new URLSearchParams(yield* signedQuery(device, "PostRemoteDiagnosis")).toString()
        const url = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
        const body = JSON.stringify({ params: { p: "x".repeat(150_000) } })
        const post = Effect.promise(() =>
          fetch(`${url}/openapi/v1/thing-uplink?${query}`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: new Blob([body]).stream(),
            duplex: "half"
          } as RequestInit)
        )
        const responses = yield* Effect.replicateEffect(post, 6)
        assert.includeMembers(responses.map(({ status }) => status), [200, 429])
      }))
  }
)

layer(testApi(StorageMemory.layer), { excludeTestServices: true })("metrics", (it) => {
  it.effect("count requests by route and status", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      yield* call("GET", `/products/${product_key}`)
      yield* call("GET", "/products/missing")
      yield* call("GET", "/nothing")
      const { text } = yield* call("GET", "//metrics", { key: null })
      // Metrics are those of the process, in which other tests have run.
      const counted = (route: string, status: number) =>
        new RegExp(
          `device_cloud_http_requests_total\\{[^}]*method="GET",route="${route}",status="${status}"[^}]*\\} [1-9]`
        )
      assert.match(text, counted("/openapi/v1/products/:product_key", 200))
      assert.match(text, counted("/openapi/v1/products/:product_key", 404))
      assert.match(text, counted("", 404))
      assert.include(text, "device_cloud_http_request_seconds_bucket")
    }))
})

layer(testApi(StorageMemory.layer, { docs: false, metrics: false }), { excludeTestServices: true })(
  "a server without documentation and metrics",
  (it) => {
    it.effect("has health alone; a server beside it has all of them", () =>
      Effect.gen(function*() {
        const paths = ["//healthz", "//readyz", "//metrics", "//docs", "//openapi.json"]
        const statuses = Effect.forEach(paths, (path) => Effect.map(call("GET", path), ({ status }) => status))
        assert.deepStrictEqual(yield* statuses, [200, 200, 404, 404, 404])
        const operations = ManagementApi.layerOperations({ readiness: {} }).pipe(
          Layer.provideMerge(Layer.fresh(PlatformNode.HttpServer.layer(createServer, { host: "127.0.0.1", port: 0 })))
        )
        yield* Effect.gen(function*() {
          assert.deepStrictEqual(yield* statuses, [200, 200, 200, 200, 200])
          assert.strictEqual((yield* call("GET", "/products")).body.code, 40400)
        }).pipe(Effect.provide(operations))
      }))
  }
)
