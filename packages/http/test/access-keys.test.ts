import { AccessKeys } from "@device-cloud/core"
import { call, createDevice, createProduct, ownerKey, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { storages } from "../../../vitest.storages.ts"
import { differences, snapshot } from "./fuzz/Complaints.ts"
import { givenFor, makeGiven, newTenant, operations } from "./fuzz/FuzzedTenant.ts"
import * as RawRequest from "./fuzz/RawRequest.ts"

const newKey = (body: object, key?: string) =>
  Effect.map(
    call("POST", "/access-keys", {
      body: { name: "test", role: "operator", ...body },
      ...key === undefined ? {} : { key }
    }),
    ({ body }) => ({ ...body, key: body.data?.key as string, id: body.data?.id as string })
  )

const day = 86_400_000

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`access keys on ${name}`, (it) => {
    it.effect(
      "a key that is limited to a product neither sees nor changes anything else, on any route",
      () =>
        Effect.gen(function*() {
          const send = yield* RawRequest.make
          const tenant = yield* newTenant
          const { keys: { admin }, project_id } = tenant
          const given = yield* makeGiven(tenant, true)
          const mine = yield* createProduct({}, { key: admin })
          const { data } = (yield* call("POST", `/products/${mine.product_key}/things`, { key: admin })).body
          const { key } = yield* newKey({ project_id, role: "admin", scopes: { products: [mine.product_key] } })
          const before = yield* snapshot(send, tenant.keys)
          const all = (yield* operations).filter(({ secured }) => secured)
          assert.isAbove(all.length, 70)
          // It refuses each series for itself.
          const devices = [{ device_id: given.values["device_id"] }, { device_id: data.device_id }]
          const { body } = yield* call("POST", "/history/query", { key, body: { devices, properties: ["power"] } })
          assert.deepStrictEqual(body.data.series.map(({ code }: { readonly code: number }) => code), [40402, 0])
          const isOpen = (path: string) => path.endsWith("/history/query") || path.endsWith("/browser-sessions/current")
          for (const operation of all.filter(({ path }) => !isOpen(path))) {
            const { values } = givenFor(operation, given)
            const valueOf = (parameter: string) => {
              const value = parameter === "project_id" ? project_id : values[parameter]
              return encodeURIComponent(String(Array.isArray(value) ? value[0] : value))
            }
            const path = operation.path.slice("/openapi/v1".length).replaceAll(/\{(\w+)\}/g, (_, name) => valueOf(name))
            const theirs = String(given.values["product_key"])
            for (
              const query of [
                "",
                `?product_key=${theirs}`,
                `?product_key=${mine.product_key}&product_key=${theirs}`,
                `?source_product_key=${theirs}&product_key=${mine.product_key}`
              ]
            ) {
              const body = operation.method === "GET" ? {} : { body: {} }
              const answer = yield* call(operation.method, path + query, { key, ...body })
              assert.deepStrictEqual(
                [answer.status, answer.body.code],
                [403, 40300],
                `${operation.method} ${path}${query}`
              )
            }
            // The same route, asked about what is below the own product or device.
            const own = operation.path.slice("/openapi/v1".length).replaceAll(
              /\{(\w+)\}/g,
              (_, name) =>
                name === "product_key" ? mine.product_key : name === "device_id" ? data.device_id : valueOf(name)
            )
            if (operation.method === "GET" && !own.endsWith("/events")) {
              const { text } = yield* call("GET", own, { key })
              for (const foreign of ["product_key", "device_id", "device_name", "gateway_id"]) {
                const value = String(given.values[foreign])
                if (!own.includes(value)) assert.notInclude(text, value, own)
              }
            }
          }
          assert.deepStrictEqual(differences(before, yield* snapshot(send, tenant.keys)), [])
        }),
      { timeout: 120_000 }
    )

    it.effect("a key that is limited to a product works with that product and its devices", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const other = yield* createProduct()
        const { device_id } = yield* createDevice(product_key)
        const foreign = yield* createDevice(other.product_key)
        const { key } = yield* newKey({ scopes: { products: [product_key] } })
        const ask = (method: string, path: string, body?: object) =>
          Effect.map(call(method, path, { key, body }), ({ body }) => body)
        for (
          const [method, path, body] of [
            ["GET", `/products/${product_key}`],
            ["GET", `/products/${product_key}/thing-model?model_type=tsl`],
            ["POST", `/products/${product_key}/things`],
            ["POST", `/products/${product_key}/batch-things`, { num: 1 }],
            ["GET", `/things/${device_id}/detail`],
            ["POST", `/things/${device_id}/properties`, { params: { a: 1 } }],
            ["PUT", `/things/${device_id}/tags`, { tags: { room: "hall" } }],
            ["POST", `/things/${device_id}/secret`],
            ["GET", `/ota/firmwares?product_key=${product_key}`]
          ] as const
        ) {
          assert.strictEqual((yield* ask(method, path, body)).code, 0, `${method} ${path}`)
        }
        const list = yield* ask("GET", `/things?product_key=${product_key}`)
        assert.strictEqual(list.data.total, 3)
        assert.match((yield* ask("GET", "/things")).message, /^product_key: /)
        // Whether a device exists is not for it to know.
        const messages = yield* Effect.forEach(
          [foreign.device_id, "missing"],
          (id) => Effect.map(ask("GET", `/things/${id}/detail`), ({ code, message }) => [code, message])
        )
        assert.deepStrictEqual(messages[0], messages[1])
        const deleted = yield* ask("DELETE", `/things/${device_id}`)
        assert.strictEqual(deleted.code, 0)
      }))

    it.effect("a key that is limited to a product is held to it however the URL of a list is written", () =>
      Effect.gen(function*() {
        const send = yield* RawRequest.make
        const { product_key } = yield* createProduct()
        const other = yield* createProduct()
        yield* createDevice(other.product_key)
        const { key } = yield* newKey({ scopes: { products: [product_key] } })
        for (const list of ["things", "events", "ota/firmwares"]) {
          for (const mark of ["#", "#/", "%23", ";", "#?a=b"]) {
            const { status, text } = yield* send({
              method: "GET",
              path: `/openapi/v1/${list}${mark}?product_key=${product_key}`,
              headers: { authorization: `Bearer ${key}` }
            })
            assert.strictEqual(status, 404, `${list}${mark}`)
            assert.strictEqual(JSON.parse(text).code, 40400)
          }
          const { status } = yield* send({
            method: "GET",
            path: `/openapi/v1/${list}?product_key=${other.product_key}#&product_key=${product_key}`,
            headers: { authorization: `Bearer ${key}` }
          })
          assert.strictEqual(status, 403, list)
        }
      }))

    it.effect("a key does the actions of its scopes only", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { device_id } = yield* createDevice(product_key)
        const { data, key } = yield* newKey({ role: "admin", scopes: { actions: ["devices:read", "commands:write"] } })
        assert.deepStrictEqual(data.scopes, { actions: ["devices:read", "commands:write"] })
        const codes = yield* Effect.forEach([
          ["GET", `/things/${device_id}/detail`],
          ["GET", "/things"],
          ["POST", `/things/${device_id}/properties`, { params: { a: 1 } }],
          ["GET", `/things/${device_id}/messages`],
          ["DELETE", `/things/${device_id}`],
          ["GET", "/products"],
          ["GET", "/access-keys"],
          ["DELETE", "//objects/missing/file"]
        ] as ReadonlyArray<[string, string, object?]>, ([method, path, body]) =>
          Effect.map(call(method, path, { key, body }), ({ body }) => body.code))
        assert.deepStrictEqual(codes, [0, 0, 0, 40300, 40300, 40300, 40300, 40300])
      }))

    it.effect("a key is used from its addresses only", () =>
      Effect.gen(function*() {
        const codeFrom = Effect.fnUntraced(function*(addresses: ReadonlyArray<string>) {
          const { key } = yield* newKey({ addresses })
          return (yield* call("GET", "/products", { key })).body.code as number
        })
        assert.strictEqual(yield* codeFrom(["127.0.0.1"]), 0)
        assert.strictEqual(yield* codeFrom(["192.0.2.0/24", "127.0.0.0/8"]), 0)
        assert.strictEqual(yield* codeFrom(["192.0.2.0/24", "::1"]), 40300)
        for (const addresses of [["300.0.0.1"], ["10.0.0.0/33"], ["example.com"], [], ["10.0.0.0/8", ""]]) {
          const { code, data } = yield* newKey({ addresses })
          assert.strictEqual(code, 40001)
          assert.match(Object.keys(data.issues)[0]!, /^addresses/)
        }
      }))

    it.effect("a key creates no key with more rights than its own", () =>
      Effect.gen(function*() {
        const { id, key } = yield* newKey({
          role: "admin",
          scopes: { actions: ["projects:write", "projects:read", "devices:read"] },
          addresses: ["127.0.0.0/8"],
          expires_at: "2999-01-01T00:00:00.000Z"
        })
        const made = yield* newKey({ role: "viewer" }, key)
        assert.deepInclude(made.data, {
          scopes: { actions: ["projects:write", "projects:read", "devices:read"] },
          addresses: ["127.0.0.0/8"],
          expires_at: "2999-01-01T00:00:00.000Z",
          created_by: id
        })
        for (
          const [body, field] of [
            [{ scopes: { actions: ["devices:write"] } }, "scopes.actions"],
            [{ addresses: ["0.0.0.0/0"] }, "addresses"],
            [{ expires_at: "2999-01-02T00:00:00.000Z" }, "expires_at"],
            [{ project_id: "elsewhere" }, "project_id"]
          ] as const
        ) {
          const { code, message } = yield* newKey(body, key)
          assert.strictEqual(code, 40300)
          assert.isTrue(message.startsWith(`${field}: `), message)
        }
        for (const scopes of [{ products: [] }, { actions: ["devices"] }, { actions: ["devices:delete"] }]) {
          assert.strictEqual((yield* newKey({ scopes })).code, 40001)
        }
        const groups = [
          ..."products thingModels codecs devices batches deviceGroups certificates configurations commands".split(" "),
          ..."bulkCommands jobs history historyRetention events subscriptions topology ota scenes mesh".split(" "),
          ..."objects bindings ble traces overview audit quotas projects".split(" ")
        ]
        const all = yield* newKey({ scopes: { actions: groups.map((group) => `${group}:read`) } })
        assert.strictEqual(all.code, 0, all.message)
        // No route of the last two needs a key, or any key may call it.
        for (const other of ["device", "browserSessions", "device-access"]) {
          const { code, message } = yield* newKey({ scopes: { actions: ["devices:read", `${other}:write`] } })
          assert.strictEqual(code, 40001, other)
          assert.isTrue(message.startsWith("scopes.actions[1]: Expected one of the groups "), message)
        }
      }))

    it.effect("says when a key ends soon", () =>
      Effect.gen(function*() {
        const inDays = (days: number) => new Date(Date.now() + days * day + day / 2).toISOString()
        const expires_at = inDays(13)
        const [soon, later, never] = [
          yield* newKey({ expires_at }),
          yield* newKey({ expires_at: inDays(14) }),
          yield* newKey({})
        ]
        assert.deepStrictEqual([soon, later, never].map(({ data }) => data.expires_in_days), [13, 14, null])
        const { body } = yield* call("GET", "/access-keys?page_size=100")
        const listed = new Map<string, boolean>(
          body.data.results.map(({ expires_soon, id }: { readonly id: string; readonly expires_soon: boolean }) => [
            id,
            expires_soon
          ])
        )
        assert.deepStrictEqual([soon, later, never].map(({ id }) => listed.get(id)), [true, false, false])
        const headers = yield* Effect.forEach([soon, later, never], ({ key }) =>
          Effect.map(call("GET", "/products", { key }), ({ headers }) => headers["access-key-expires"]))
        assert.deepStrictEqual(headers, [expires_at, undefined, undefined])
      }))

    it.effect("a key goes with all keys that come from it, if it is asked for", () =>
      Effect.gen(function*() {
        const root = yield* newKey({ role: "admin" })
        const child = yield* newKey({ role: "admin" }, root.key)
        const grandchild = yield* newKey({ role: "viewer" }, child.key)
        const alone = yield* newKey({ role: "admin" })
        const kept = yield* newKey({ role: "viewer" }, alone.key)
        const works = (keys: ReadonlyArray<{ readonly key: string }>) =>
          Effect.forEach(keys, ({ key }) => Effect.map(call("GET", "/products", { key }), ({ body }) => body.code))
        assert.deepStrictEqual(yield* works([root, child, grandchild, alone, kept]), [0, 0, 0, 0, 0])
        assert.strictEqual((yield* call("DELETE", `/access-keys/${root.id}?cascade=true`)).body.code, 0)
        assert.strictEqual((yield* call("DELETE", `/access-keys/${alone.id}`)).body.code, 0)
        assert.deepStrictEqual(yield* works([root, child, grandchild, alone, kept]), [40100, 40100, 40100, 40100, 0])
        assert.strictEqual((yield* call("DELETE", `/access-keys/${kept.id}?cascade=maybe`)).body.code, 40001)
      }))

    it.effect("all keys that come from an owner's key that was replaced go, in all projects, if an owner asks for it", () =>
      Effect.gen(function*() {
        const accessKeys = yield* AccessKeys
        const stolen = `dck_${"s".repeat(12)}_${"1".repeat(43)}`
        yield* accessKeys.setOwner(Redacted.make(stolen))
        const { body: { data: { id: project_id } } } = yield* call("POST", "/projects", {
          key: stolen,
          body: { name: "Other" }
        })
        const here = yield* newKey({ role: "admin" }, stolen)
        const elsewhere = yield* newKey({ role: "admin", project_id }, stolen)
        const through = yield* newKey({ role: "admin" }, elsewhere.key)
        yield* accessKeys.setOwner(Redacted.make(ownerKey))
        const bystander = yield* newKey({ role: "admin" })
        const codes = Effect.forEach(
          [here, elsewhere, through, bystander],
          ({ key }) => Effect.map(call("GET", "/products", { key }), ({ body }) => body.code)
        )
        assert.deepStrictEqual(yield* codes, [0, 0, 0, 0])
        const remove = (query: string, key: string) =>
          Effect.map(call("DELETE", `/access-keys/${stolen.slice(4, 16)}${query}`, { key }), ({ body }) => body.code)
        assert.deepStrictEqual(
          [yield* remove("", ownerKey), yield* remove("?cascade=true", bystander.key)],
          [40412, 40412]
        )
        assert.strictEqual(yield* remove("?cascade=true", ownerKey), 0)
        assert.deepStrictEqual(yield* codes, [40100, 40100, 40100, 0])
        assert.strictEqual(yield* remove("?cascade=true", ownerKey), 40412)
      }))
  })
}
