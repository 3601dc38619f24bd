import { StoreError, StoreHealth } from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { ProductStore } from "@device-cloud/core"
import { call, type CallOptions, createProduct, productBody, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { gzipSync } from "node:zlib"

layer(testApi(StorageMemory.layer), { excludeTestServices: true })("any request", (it) => {
  it.effect.each<readonly [string, string, string, CallOptions, number, number]>([
    ["an unknown route", "GET", "/nothing", {}, 404, 40400],
    ["an unknown route without a key", "GET", "/nothing", { key: null }, 404, 40400],
    ["a route outside of the API", "GET", "//elsewhere", {}, 404, 40400],
    ["a path that is not well encoded", "GET", "/products/%zz", {}, 404, 40400],
    ["a path without the id of a device", "GET", "/things//detail", {}, 404, 40400],
    ["a path that ends without an id", "DELETE", "/things//", {}, 404, 40400],
    ["malformed JSON", "POST", "/products", { raw: "{\"name\":" }, 400, 40000],
    ["an empty body", "POST", "/products", { raw: "" }, 400, 40000],
    ["a byte order mark alone", "POST", "/products", { raw: "\uFEFF" }, 400, 40000],
    ["a body that is not UTF-8", "POST", "/products", { raw: Buffer.from([0xff, 0xfe]) }, 400, 40000],
    ["a JSON text instead of an object", "POST", "/products", { raw: "\"text\"" }, 400, 40001],
    ["a JSON array instead of an object", "POST", "/products", { body: [] }, 400, 40001],
    ["null instead of an object", "POST", "/products", { body: null }, 400, 40001],
    ["another media type", "POST", "/products", { raw: "<a/>", headers: { "content-type": "text/xml" } }, 415, 41500],
    [
      "a form",
      "POST",
      "/products",
      {
        raw: "name=x",
        headers: { "content-type": "application/x-www-form-urlencoded" }
      },
      415,
      41500
    ],
    [
      "a body of 3 MB",
      "POST",
      "/products",
      { body: { ...productBody, description: "x".repeat(3_000_000) } },
      413,
      41300
    ],
    [
      "a registration of 20 KB",
      "POST",
      "/auth/register/device",
      { body: { product_key: "x".repeat(20_000) }, key: null },
      413,
      41300
    ],
    ["a parameter given twice", "GET", "/products?page=1&page=2", {}, 400, 40001]
  ])("answers %s with an envelope", ([, method, path, options, status, code]) =>
    Effect.gen(function*() {
      const answer = yield* call(method, path, options)
      assert.deepStrictEqual([answer.status, answer.body.code], [status, code], answer.text)
      assert.isNotEmpty(answer.body.message)
      assert.isDefined(answer.headers["x-request-id"])
      assert.match(String(answer.headers["content-type"]), /^application\/json/)
    }))

  it.effect("says of a compressed body that it is to come without Content-Encoding", () =>
    Effect.gen(function*() {
      const raw = gzipSync(JSON.stringify(productBody))
      const { body } = yield* call("POST", "/products", { raw, headers: { "content-encoding": "gzip" } })
      assert.deepInclude(body, {
        code: 40000,
        message: "The body is not valid JSON; send it without Content-Encoding"
      })
    }))

  it.effect("answers a wrong method with 40500 and the methods that are allowed", () =>
    Effect.gen(function*() {
      for (
        const [method, path, allow] of [
          ["DELETE", "/products", "HEAD, GET, POST"],
          ["PATCH", "/products/x", "HEAD, GET, PUT, DELETE"],
          ["POST", "/things", "HEAD, GET"],
          ["POST", "//healthz", "HEAD, GET"],
          ["OPTIONS", "/things/x/status?a=b", "HEAD, GET, PUT"]
        ] as const
      ) {
        const answer = yield* call(method, path)
        assert.deepStrictEqual([answer.status, answer.body.code], [405, 40500], `${method} ${path}`)
        assert.sameMembers(String(answer.headers["allow"]).split(", "), allow.split(", "))
      }
    }))

  it.effect("takes JSON with any JSON media type and ignores unknown fields and queries", () =>
    Effect.gen(function*() {
      for (const type of ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON"]) {
        const { body } = yield* call("POST", "/products?unknown=1", {
          body: { ...productBody, unknown: true, __proto__: 1 },
          headers: { "content-type": type }
        })
        assert.strictEqual(body.code, 0, type)
      }
      const { product_key } = yield* createProduct()
      const answer = yield* call("PUT", `/products/${product_key}/status`, {
        raw: `{"status":"released","__proto__":{"a":1}}`
      })
      assert.strictEqual(answer.body.code, 0)
    }))

  it.effect("echoes a usable request id and makes one otherwise", () =>
    Effect.gen(function*() {
      const echoed = yield* call("GET", "/products", { headers: { "x-request-id": "trace-42" } })
      assert.strictEqual(echoed.headers["x-request-id"], "trace-42")
      for (const forged of ["a b", "x\u00e9", "a=1", "\""] as const) {
        const answer = yield* call("GET", "/nothing", { headers: { "x-request-id": forged } })
        assert.match(String(answer.headers["x-request-id"]), /^[0-9a-f]{16}$/, forged)
      }
      const long = yield* call("GET", "/nothing", { headers: { "x-request-id": "x".repeat(129) } })
      assert.match(String(long.headers["x-request-id"]), /^[0-9a-f]{16}$/)
      const other = yield* call("GET", "/nothing")
      assert.notStrictEqual(other.headers["x-request-id"], long.headers["x-request-id"])
    }))

  it.effect("carries headers that keep browsers from running or framing it, whatever it is", () =>
    Effect.gen(function*() {
      const form = `--b\r\ncontent-disposition: form-data; name="file"; filename="a.html"\r\n\r\n<script>\r\n--b--\r\n`
      const { url } = (yield* call("POST", "/oss", {
        raw: form,
        headers: { "content-type": "multipart/form-data; boundary=b" }
      })).body.data
      const object = `/${new URL(url).pathname}`
      for (
        const [method, path, options] of [
          ["GET", "/products", {}],
          ["GET", "/products", { key: null }],
          ["GET", "/nothing", {}],
          ["DELETE", "/products", {}],
          ["POST", "/products", { raw: "{" }],
          ["POST", "/thing-uplink", { key: null }],
          ["GET", "//healthz", {}],
          ["GET", "//metrics", {}],
          ["GET", "//docs", {}],
          ["GET", "//openapi.json", {}],
          ["GET", object, {}],
          ["HEAD", object, {}],
          ["GET", `${object}x`, {}],
          ["POST", "//auth/register/device", { raw: "x=1" }]
        ] as ReadonlyArray<readonly [string, string, CallOptions]>
      ) {
        const { headers } = yield* call(method, path, options)
        assert.deepInclude(headers, {
          "x-content-type-options": "nosniff",
          "x-frame-options": "DENY",
          "referrer-policy": "no-referrer"
        }, `${method} ${path}`)
        const policy = String(headers["content-security-policy"])
        assert.match(policy, /^default-src 'none'; /)
        assert.match(policy, /frame-ancestors 'none'$/)
        assert.notInclude(policy, "unsafe-eval")
      }
      const download = yield* call("GET", object)
      assert.deepInclude(download.headers, {
        "content-type": "application/octet-stream",
        "content-disposition": `attachment; filename="a.html"`
      })
    }))

  it.effect("answers HEAD like GET, without a body", () =>
    Effect.gen(function*() {
      const answer = yield* call("HEAD", "/products")
      assert.deepStrictEqual([answer.status, answer.text], [200, ""])
    }))

  it.effect("says that it lives, that it is ready, and how it is doing, to anyone", () =>
    Effect.gen(function*() {
      const options = { key: null }
      assert.deepInclude((yield* call("GET", "//healthz", options)).body, { code: 0 })
      assert.deepInclude((yield* call("GET", "//readyz", options)).body, { code: 0, data: { storage: "ok" } })
      const metrics = yield* call("GET", "//metrics", options)
      assert.match(String(metrics.headers["content-type"]), /^text\/plain/)
      assert.include(metrics.text, "# TYPE device_cloud_connections gauge")
    }))
})

/** Storage whose products fail in a given way. */
const failing = (failure: Effect.Effect<never, StoreError>) =>
  Layer.effectContext(Effect.map(
    Effect.context<ProductStore | StoreHealth>(),
    (context) =>
      context.pipe(
        Context.add(ProductStore, { ...Context.get(context, ProductStore), list: () => failure, get: () => failure }),
        Context.add(StoreHealth, { check: failure })
      )
  )).pipe(Layer.provideMerge(StorageMemory.layer))

const secretDetail = "connect to 10.0.0.7 with password hunter2 failed"
const unreachable = Effect.fail(
  new StoreError({ operation: "ProductStore.list", retryable: true, cause: new Error(secretDetail) })
)

layer(testApi(failing(unreachable)), { excludeTestServices: true })("a storage that cannot be reached", (it) => {
  it.effect("is answered with 503 and a time to try again", () =>
    Effect.gen(function*() {
      const answer = yield* call("GET", "/products")
      assert.deepStrictEqual([answer.status, answer.body.code], [503, 50300])
      assert.match(String(answer.headers["retry-after"]), /^\d+$/)
      assert.notInclude(answer.text, "hunter2")
    }))

  it.effect("makes the server not ready, but it lives", () =>
    Effect.gen(function*() {
      const ready = yield* call("GET", "//readyz", { key: null })
      assert.deepStrictEqual([ready.status, ready.body.code], [503, 50300])
      assert.include(ready.body.message, "storage")
      assert.isDefined(ready.headers["retry-after"])
      assert.strictEqual((yield* call("GET", "//healthz")).status, 200)
    }))
})

const silent: ReadonlyArray<readonly [string, (wait: Effect.Effect<never>) => Effect.Effect<never>]> = [
  ["a storage that does not answer", (wait) => wait],
  ["a storage that does not answer within a transaction", Effect.uninterruptible]
]

for (const [name, waiting] of silent) {
  const asked = Deferred.makeUnsafe<void>()
  layer(testApi(failing(waiting(Effect.andThen(Deferred.succeed(asked, undefined), Effect.never)))))(name, (it) => {
    it.effect("is answered for with 503 after fifteen seconds", () =>
      Effect.gen(function*() {
        const answering = yield* Effect.forkChild(call("GET", "/products", { headers: { "x-request-id": "trace-8" } }))
        yield* Deferred.await(asked)
        yield* TestClock.adjust("14 seconds")
        assert.isUndefined(answering.pollUnsafe())
        yield* TestClock.adjust("2 seconds")
        const answer = yield* Fiber.join(answering)
        assert.deepStrictEqual([answer.status, answer.body.code], [503, 50300])
        assert.strictEqual(answer.headers["x-request-id"], "trace-8")
        assert.match(String(answer.headers["retry-after"]), /^\d+$/)
      }))
  })
}

const broken: ReadonlyArray<readonly [string, Effect.Effect<never, StoreError>]> = [
  ["a defect", Effect.die(new Error(secretDetail))],
  [
    "a refused statement",
    Effect.fail(
      new StoreError({ operation: "ProductStore.list", retryable: false, cause: new Error(secretDetail) })
    )
  ]
]

for (const [name, failure] of broken) {
  layer(testApi(failing(failure)), { excludeTestServices: true })(name, (it) => {
    it.effect("is answered with 500, a request id and no inner detail", () =>
      Effect.gen(function*() {
        const answer = yield* call("GET", "/products", { headers: { "x-request-id": "trace-7" } })
        assert.deepStrictEqual([answer.status, answer.body.code], [500, 50000])
        assert.deepStrictEqual(answer.body.data, { request_id: "trace-7" })
        assert.notInclude(answer.text, "hunter2")
        assert.strictEqual(answer.headers["x-request-id"], "trace-7")
      }))
  })
}
