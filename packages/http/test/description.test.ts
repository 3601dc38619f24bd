import { DeviceCloudClient, ManagementApi } from "@device-cloud/http"
import * as StorageMemory from "@device-cloud/storage-memory"
import { call, ownerKey, productBody, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { HttpServer } from "effect/http"

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
            readonly responses: object
            readonly requestBody?: unknown
          }>
        >
      }
      assert.match(openapi, /^3\./)
      for (const [path, methods] of Object.entries(paths)) {
        assert.match(path, /^\/openapi\/v1\//)
        for (const [method, operation] of Object.entries(methods)) {
          assert.isNotEmpty(operation.summary, `${method} ${path}`)
          assert.includeMembers(Object.keys(operation.responses), ["200", "400", "401", "403", "404", "500", "503"])
        }
      }
      const created = JSON.stringify(paths["/openapi/v1/products"]!["post"]!.requestBody)
      assert.include(created, "network_type")
      assert.notInclude(created, "networkType")
    }))

  it.effect("has a page to read it", () =>
    Effect.gen(function*() {
      const page = yield* call("GET", "//docs", { key: null })
      assert.strictEqual(page.status, 200)
      assert.match(String(page.headers["content-type"]), /^text\/html/)
      assert.include(page.text, "/openapi/v1/products")
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
