import { call, createDevice, createProduct, productBody, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`products on ${name}`, (it) => {
    it.effect("creates a product with all fields of the specification", () =>
      Effect.gen(function*() {
        const { body, status } = yield* call("POST", "/products", {
          body: {
            name: "Gateway lamp",
            node_type: "gateway-sub",
            network_type: "",
            protocol_type: "ble-mesh",
            validate_type: "none",
            data_format: "raw",
            auth_type: "secret",
            dynamic_register: true,
            photo_url: "https://example.com/lamp.png",
            description: "A lamp 💡",
            device_type: "light",
            product_key: "ignoredkey1",
            product_secret: "ignored",
            unknown: { field: 1 }
          }
        })
        assert.deepStrictEqual([status, body.code, body.message], [200, 0, "success"])
        const { created_at, id, product_key, product_secret, updated_at, ...rest } = body.data.product_info
        assert.deepStrictEqual(rest, {
          project_id: "default",
          name: "Gateway lamp",
          description: "A lamp 💡",
          photo_url: "https://example.com/lamp.png",
          device_type: "light",
          node_type: "gateway-sub",
          network_type: "",
          protocol_type: "ble-mesh",
          validate_type: "none",
          data_format: "raw",
          auth_type: "secret",
          uplink_signature: "any",
          dynamic_register: true,
          status: "developing",
          platform: 0,
          platform_name: "",
          data_source: 0,
          configuration: "",
          register_at: ""
        })
        assert.isTrue(Number.isSafeInteger(id) && id > 0)
        assert.match(product_key, /^[A-Za-z][A-Za-z0-9]{10}$/)
        assert.match(product_secret, /^[a-z0-9]{16}$/)
        assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|\+00:00)$/)
        assert.strictEqual(updated_at, created_at)
        const read = yield* call("GET", `/products/${product_key}`)
        assert.deepStrictEqual(read.body.data, body.data)
      }))

    it.effect.each<readonly [string, object, Record<string, unknown>]>([
      ["no field at all", {
        name: undefined,
        node_type: undefined,
        validate_type: undefined,
        data_format: undefined,
        auth_type: undefined,
        network_type: undefined
      }, {
        name: 1,
        node_type: 1,
        validate_type: 1,
        data_format: 1,
        auth_type: 1
      }],
      ["wrong types", { name: 5, dynamic_register: "yes", photo_url: [], node_type: null }, {
        name: 1,
        dynamic_register: 1,
        photo_url: 1,
        node_type: 1
      }],
      ["a blank name", { name: " " }, { name: 1 }],
      ["a name of 129 characters", { name: "x".repeat(129) }, { name: 1 }],
      ["a NUL character", { description: "a\0b" }, { description: 1 }],
      ["half a character", { description: "\ud800" }, { description: 1 }],
      ["an unknown network", { network_type: "pigeon" }, { network_type: 1 }],
      ["no network on a direct device", { network_type: "" }, { network_type: 1 }],
      ["a network on a sub-device", { node_type: "gateway-sub", protocol_type: "ble" }, { network_type: 1 }],
      ["no protocol on a sub-device", { node_type: "gateway-sub", network_type: "" }, { protocol_type: 1 }],
      ["a protocol on a gateway", { node_type: "gateway", protocol_type: "ble" }, { protocol_type: 1 }]
    ])("refuses %s and names the fields", ([, fields, issues]) =>
      Effect.gen(function*() {
        const before = (yield* call("GET", "/products")).body.data.total
        const { body, status } = yield* call("POST", "/products", {
          body: { ...productBody, ...fields }
        })
        assert.deepStrictEqual([status, body.code], [400, 40001])
        assert.sameMembers(Object.keys(body.data.issues), Object.keys(issues))
        for (const messages of Object.values(body.data.issues)) assert.isNotEmpty(messages)
        assert.isTrue(Object.keys(issues).some((field) => body.message.includes(field)), body.message)
        assert.strictEqual((yield* call("GET", "/products")).body.data.total, before)
      }))

    it.effect("changes name, description, picture, registration and status", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct({ description: "old" })
        const update = { name: "New", dynamic_register: true, photo_url: "p" }
        const updated = yield* call("PUT", `/products/${product_key}`, { body: update })
        assert.deepStrictEqual(updated.body, { code: 0, message: "success" })
        const { product_info } = (yield* call("GET", `/products/${product_key}`)).body.data
        assert.deepInclude(product_info, { ...update, description: "old", status: "developing" })
        yield* call("PUT", `/products/${product_key}`, { body: { ...update, description: "" } })
        yield* call("PUT", `/products/${product_key}/status`, { body: { status: "released" } })
        const after = (yield* call("GET", `/products/${product_key}`)).body.data.product_info
        assert.deepInclude(after, { description: "", status: "released" })

        const incomplete = yield* call("PUT", `/products/${product_key}`, { body: { name: "Half" } })
        assert.strictEqual(incomplete.body.code, 40001)
        assert.hasAllKeys(incomplete.body.data.issues, ["dynamic_register", "photo_url"])
        const wrong = yield* call("PUT", `/products/${product_key}/status`, { body: { status: "retired" } })
        assert.deepStrictEqual([wrong.body.code, Object.keys(wrong.body.data.issues)], [40001, ["status"]])
        assert.strictEqual((yield* call("GET", `/products/${product_key}`)).body.data.product_info.name, "New")
      }))

    it.effect("deletes a product, but not one with devices", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { device_id } = yield* createDevice(product_key)
        const refused = yield* call("DELETE", `/products/${product_key}`)
        assert.deepStrictEqual([refused.status, refused.body.code], [409, 40902])
        yield* call("DELETE", `/things/${device_id}`)
        assert.deepStrictEqual((yield* call("DELETE", `/products/${product_key}`)).body, {
          code: 0,
          message: "success"
        })
        for (const method of ["GET", "DELETE"]) {
          const gone = yield* call(method, `/products/${product_key}`)
          assert.deepStrictEqual([gone.status, gone.body.code], [404, 40401])
        }
        const update = yield* call("PUT", `/products/${product_key}/status`, { body: { status: "released" } })
        assert.strictEqual(update.body.code, 40401)
      }))

    it.effect("lists products newest first, in pages", () =>
      Effect.gen(function*() {
        const { body: { data: { id, key } } } = yield* call("POST", "/projects", { body: { name: "Pages" } }).pipe(
          Effect.flatMap(({ body }) =>
            call("POST", "/access-keys", { body: { name: "pages", role: "admin", project_id: body.data.id } })
          )
        )
        assert.isString(id)
        const created = yield* Effect.forEach(
          Array.from({ length: 12 }),
          (_, i) => Effect.map(createProduct({ name: `P${i}` }, { key }), ({ product_key }) => product_key)
        )
        const newest = created.toReversed()
        const page = (query: string) => Effect.map(call("GET", `/products${query}`, { key }), ({ body }) => body.data)
        const keys = (data: { readonly results: ReadonlyArray<{ readonly product_key: string }> }) =>
          data.results.map(({ product_key }) => product_key)
        const first = yield* page("")
        assert.deepInclude(first, { total: 12, page: 1, page_size: 10, pages: 2 })
        assert.deepStrictEqual(keys(first), newest.slice(0, 10))
        assert.deepStrictEqual(keys(yield* page("?page=2")), newest.slice(10))
        assert.deepStrictEqual(keys(yield* page("?page=3&page_size=5")), newest.slice(10))
        assert.deepStrictEqual(keys(yield* page("?page_size=100")), newest)
        const beyond = yield* page("?page=99")
        assert.deepInclude(beyond, { results: [], total: 12, page: 99, pages: 2 })
        assert.deepInclude(yield* page("?page=2147483647&page_size=100"), { results: [], total: 12 })
        for (
          const query of [
            "page=0",
            "page=-1",
            "page=1.5",
            "page=x",
            "page=",
            "page=2147483648",
            "page_size=0",
            "page_size=101",
            "page_size=1e9",
            "page=NaN",
            "page=Infinity"
          ]
        ) {
          const { body } = yield* call("GET", `/products?${query}`, { key })
          assert.deepStrictEqual(
            [body.code, Object.keys(body.data?.issues ?? {})],
            [40001, [query.split("=")[0]]],
            query
          )
        }
      }))
  })
}
