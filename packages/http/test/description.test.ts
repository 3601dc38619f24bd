import { DeviceCloudClient, ManagementApi } from "@device-cloud/http"
import * as StorageMemory from "@device-cloud/storage-memory"
import { call, ownerKey, productBody, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { HttpServer } from "effect/http"
import { createHash } from "node:crypto"
import { operationsOf } from "./fuzz/ApiDescription.ts"
import type { JsonSchema } from "./fuzz/JsonSchema.ts"

/** The codes that a schema allows. */
const codesIn = ({ anyOf = [], properties }: JsonSchema): ReadonlyArray<unknown> => [
  ...properties?.["code"]?.enum ?? [],
  ...anyOf.flatMap(codesIn)
]

layer(testApi(StorageMemory.layer), { excludeTestServices: true })("the API", (it) => {
  it.effect("describes itself in OpenAPI, with wire names, summaries and failures", () =>
    Effect.gen(function*() {
      const { body, status } = yield* call("GET", "//openapi.json", { key: null })
      assert.strictEqual(status, 200)
      const { openapi, paths } = body as unknown as {
        readonly openapi: string
        readonly paths: Record<
          string,
          Record<string, {
            readonly summary?: string
            readonly responses: Record<string, unknown>
            readonly security: ReadonlyArray<unknown>
            readonly requestBody?: unknown
          }>
        >
      }
      assert.match(openapi, /^3\./)
      for (const [path, methods] of Object.entries(paths)) {
        assert.match(path, /^\/openapi\/v1\//)
        for (const [method, operation] of Object.entries(methods)) {
          assert.isNotEmpty(operation.summary, `${method} ${path}`)
          const always = ["200", "400", "429", "500", "503"]
          assert.includeMembers(
            Object.keys(operation.responses),
            operation.security.length === 0 ? always : [...always, "401", "403"],
            `${method} ${path}`
          )
        }
      }
      const created = JSON.stringify(paths["/openapi/v1/products"]!["post"]!.requestBody)
      assert.include(created, "network_type")
      assert.notInclude(created, "networkType")
    }))

  it.effect("declares for each route the failures that it can have, and no others", () =>
    Effect.gen(function*() {
      const { text } = yield* call("GET", "//openapi.json", { key: null })
      const operations = operationsOf(JSON.parse(text))
      const codesOf = (method: string, path: string) => {
        const found = operations.find((operation) =>
          operation.method === method && operation.path === `/openapi/v1${path}`
        )
        assert(found !== undefined)
        return Object.entries(found.responses).flatMap(([status, schema]) =>
          status === "200" || schema === undefined ? [] : codesIn(schema)
        )
      }
      // What any route with an access key can have.
      const always = [40000, 40001, 40100, 40101, 40300, 40304, 42900, 50000, 50300]
      const bodies = [41300, 41500]
      assert.sameMembers(codesOf("GET", "/products"), always)
      assert.sameMembers(codesOf("GET", "/products/{product_key}"), [...always, 40401])
      assert.sameMembers(codesOf("DELETE", "/products/{product_key}"), [...always, 40401, 40902])
      assert.sameMembers(codesOf("PUT", "/things/{device_id}/shadow"), [...always, ...bodies, 40402, 40003, 40904])
      assert.sameMembers(
        [...new Set(codesOf("POST", "/things/{device_id}/services/{service_id}"))],
        [...always, ...bodies, 40003, 40301, 40402, 40411, 40900, 40911, 40920]
      )
      // Its answer shows a secret: it keeps none for an Idempotency-Key.
      assert.sameMembers(codesOf("POST", "/access-keys"), [...always, ...bodies, 40412, 40900])
    }))

  it.effect("says what numbers and texts have to be like", () =>
    Effect.gen(function*() {
      const { text } = yield* call("GET", "//openapi.json", { key: null })
      const paths = (JSON.parse(text) as {
        readonly paths: Record<
          string,
          Record<string, {
            readonly parameters: ReadonlyArray<{ readonly name: string; readonly schema: JsonSchema }>
            readonly requestBody: { readonly content: Record<string, { readonly schema: JsonSchema }> }
          }>
        >
      }).paths
      const parameterOf = (method: string, path: string, name: string) =>
        paths[`/openapi/v1${path}`]![method]!.parameters.find((each) => each.name === name)!.schema
      assert.deepStrictEqual(parameterOf("get", "/jobs/{job_id}", "job_id"), { type: "integer", minimum: 0 })
      assert.deepStrictEqual(parameterOf("get", "/rule-engine/cron", "count"), {
        type: "integer",
        minimum: 1,
        maximum: 20
      })
      assert.deepStrictEqual(parameterOf("get", "/things", "tag"), {
        type: "string",
        maxLength: 1024,
        pattern: "^[^:]{1,100}:"
      })
      const bodyOf = (path: string) =>
        paths[`/openapi/v1${path}`]!["post"]!.requestBody.content["application/json"]!.schema.properties!
      assert.deepStrictEqual(bodyOf("/products")["name"], { type: "string", maxLength: 128, pattern: "\\S" })
      assert.strictEqual(bodyOf("/products/{product_key}/ota/firmwares")["hash"]!.pattern, "^[0-9A-Fa-f]{32}$")
    }))

  it.effect("has a page to read it", () =>
    Effect.gen(function*() {
      const page = yield* call("GET", "//docs", { key: null })
      assert.strictEqual(page.status, 200)
      assert.match(String(page.headers["content-type"]), /^text\/html/)
      assert.include(page.text, "/openapi/v1/products")
    }))

  it.effect("prepares description and page once, compressed as the client accepts, and says when they are the same", () =>
    Effect.gen(function*() {
      const url = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
      const ask = (path: string, headers: Record<string, string>) =>
        Effect.promise(async () => {
          const response = await fetch(`${url}${path}`, { headers })
          return { status: response.status, headers: response.headers, text: await response.text() }
        })
      for (const path of ["/docs", "/openapi.json"]) {
        const plain = yield* ask(path, { "accept-encoding": "identity" })
        assert.isNull(plain.headers.get("content-encoding"))
        const tags = [plain.headers.get("etag")]
        for (const [accepted, coding] of [["br, gzip", "br"], ["gzip, br;q=0", "gzip"], ["GZIP;q=0.5", "gzip"]]) {
          const { headers, status, text } = yield* ask(path, { "accept-encoding": accepted! })
          assert.deepStrictEqual([status, headers.get("content-encoding"), headers.get("vary")], [
            200,
            coding,
            "Accept-Encoding"
          ])
          assert.match(headers.get("cache-control")!, /^public, max-age=\d+$/)
          assert.isBelow(Number(headers.get("content-length")), plain.text.length / 3)
          assert.isTrue(text === plain.text)
          tags.push(headers.get("etag"))
        }
        assert.strictEqual(new Set(tags).size, 3)
        for (const tag of tags) {
          const { headers, status, text } = yield* ask(path, { "if-none-match": tag! })
          assert.deepStrictEqual([status, text], [304, ""])
          assert.isNotNull(headers.get("etag"))
        }
      }
    }))

  it.effect("allows the page its own scripts and no others", () =>
    Effect.gen(function*() {
      const { headers, text } = yield* call("GET", "//docs", { key: null })
      const policy = String(headers["content-security-policy"])
      const scripts = [...text.matchAll(/<script>([^]*?)<\/script>/g)]
      assert.strictEqual(scripts.length, 2)
      for (const [, script] of scripts) {
        assert.include(policy, `'sha256-${createHash("sha256").update(script!).digest("base64")}'`)
      }
    }))

  it.effect("has a typed client, whose failures are typed too", () =>
    Effect.gen(function*() {
      const baseUrl = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
      yield* Effect.gen(function*() {
        const client = yield* DeviceCloudClient
        const { data: { product_info } } = yield* client.products.createProduct({
          payload: productBody
        })
        const { data } = yield* client.products.listProducts({ query: { page: 1, page_size: 5 } })
        assert.deepStrictEqual(data.results.map(({ product_key }) => product_key), [product_info.product_key])
        const failure = yield* Effect.flip(client.devices.getDevice({ params: { device_id: "missing" as never } }))
        assert.deepInclude(failure, { code: 40402 })
      }).pipe(Effect.provide(DeviceCloudClient.layer({ baseUrl, accessKey: Redacted.make(ownerKey) })))
    }))

  it.effect("is a function from request to response, for other servers", () =>
    Effect.gen(function*() {
      const fetch = yield* ManagementApi.fetchHandler({ readiness: {}, publicUrl: "https://cloud.example.com/base/" })
      const ask = (method: string, path: string, body?: string | FormData) =>
        Effect.promise(async () => {
          const response = await fetch(
            new Request(`http://localhost${path}`, {
              method,
              headers: {
                authorization: `Bearer ${ownerKey}`,
                ...typeof body === "string" ? { "content-type": "application/json" } : {}
              },
              ...body === undefined ? {} : { body }
            })
          )
          return { status: response.status, text: await response.text(), id: response.headers.get("x-request-id") }
        })
      const created = yield* ask("POST", "/openapi/v1/products", JSON.stringify({ ...productBody, name: "Fetched" }))
      assert.strictEqual(created.status, 200)
      assert.isNotEmpty(created.id)
      const { product_key } = JSON.parse(created.text).data.product_info
      // It is the cloud that the server serves.
      assert.strictEqual((yield* call("GET", `/products/${product_key}`)).body.data.product_info.name, "Fetched")
      const missing = yield* ask("GET", "/openapi/v1/nothing")
      assert.deepStrictEqual([missing.status, JSON.parse(missing.text).code], [404, 40400])
      const form = new FormData()
      form.append("file", new Blob(["hello"]), "hello.txt")
      const { data: { url } } = JSON.parse((yield* ask("POST", "/openapi/v1/oss", form)).text)
      assert.match(url, /^https:\/\/cloud\.example\.com\/base\/objects\/\w{32}\/hello\.txt$/)
      assert.strictEqual((yield* ask("GET", new URL(url).pathname.replace("/base", ""))).text, "hello")
    }))
})
