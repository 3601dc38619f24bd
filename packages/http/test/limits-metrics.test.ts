import * as StorageMemory from "@device-cloud/storage-memory"
import { call, createProduct, ownerKey, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"

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

layer(testApi(StorageMemory.layer), { excludeTestServices: true })("metrics", (it) => {
  it.effect("count requests by route and status", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      yield* call("GET", `/products/${product_key}`)
      yield* call("GET", "/products/missing")
      yield* call("GET", "/nothing")
      const { text } = yield* call("GET", "//metrics", { key: null })
      const counted = (route: string, status: number) =>
        new RegExp(
          `device_cloud_http_requests_total\\{[^}]*method="GET",route="${route}",status="${status}"[^}]*\\} 1\\b`
        )
      assert.match(text, counted("/openapi/v1/products/:product_key", 200))
      assert.match(text, counted("/openapi/v1/products/:product_key", 404))
      assert.match(text, counted("", 404))
      assert.include(text, "device_cloud_http_request_seconds_bucket")
    }))
})
