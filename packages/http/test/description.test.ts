import { Api, Authorization } from "@device-cloud/http"
import * as StorageMemory from "@device-cloud/storage-memory"
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { FetchHttpClient, HttpServer } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { call, ownerKey, testApi } from "./TestApi.ts"

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
      const client = yield* HttpApiClient.make(Api, { baseUrl })
      const { data: { product_info } } = yield* client.products.createProduct({
        payload: {
          name: "Typed",
          node_type: "direct",
          network_type: "wifi",
          validate_type: "weak",
          data_format: "json",
          auth_type: "secret"
        }
      })
      const { data } = yield* client.products.listProducts({ query: { page: 1, page_size: 5 } })
      assert.deepStrictEqual(data.results.map(({ product_key }) => product_key), [product_info.product_key])
      const failure = yield* Effect.flip(client.devices.getDevice({ params: { device_id: "missing" as never } }))
      assert.deepInclude(failure, { code: 40402 })
    }).pipe(Effect.provide([FetchHttpClient.layer, Authorization.layerClient(Redacted.make(ownerKey))])))
})
