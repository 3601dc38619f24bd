import { defaultProjectId, IdempotencyStore, MaxIdempotencyKeys } from "@device-cloud/core"
import { call, createProduct, productBody, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { storages } from "../../../vitest.storages.ts"
import { operationsOf } from "./fuzz/ApiDescription.ts"

/** What reached the store, as text: what a dump of it would show. */
const stored: Array<string> = []

/** Writes down what is stored. */
const watched = <A, E>(storage: Layer.Layer<A | IdempotencyStore, E>) =>
  Layer.effectContext(
    Effect.contextWith((services: Context.Context<IdempotencyStore>) => {
      const store = Context.get(services, IdempotencyStore)
      return Effect.succeed(Context.make(IdempotencyStore, {
        ...store,
        claim: (request) => {
          stored.push(JSON.stringify(request))
          return store.claim(request)
        },
        answer: (request, answer) => {
          stored.push(JSON.stringify(answer))
          return store.answer(request, answer)
        }
      }))
    })
  ).pipe(Layer.provideMerge(storage))

for (const [name, storage] of storages) {
  layer(testApi(watched(storage)), { excludeTestServices: true })(`keys of idempotency on ${name}`, (it) => {
    it.effect("keep neither requests nor responses in plain, whatever way a path is written", () =>
      Effect.gen(function*() {
        const { product_key, product_secret } = yield* createProduct({ name: "Sealed product" }, {
          headers: { "idempotency-key": "sealed" }
        })
        const headers = { "idempotency-key": "sealed-2" }
        const device = yield* call("POST", `/products/${product_key}/things`, { body: { nickname: "Desk" }, headers })
        const again = yield* call("POST", `/products/${product_key}/things`, { body: { nickname: "Desk" }, headers })
        assert.deepStrictEqual(again.body, device.body)
        const { device_secret } = device.body.data
        assert.isString(device_secret)
        const { key: webhookKey } = (yield* call("POST", "/rule-engine/webhook-key", {
          headers: { "idempotency-key": "sealed-3" }
        })).body.data
        const mesh = (yield* call("POST", "/mesh/networks", { headers: { "idempotency-key": "sealed-4" } })).body.data
        const keys: Array<string> = []
        for (
          const [i, path] of ["/access-keys", "/access-keys/", "/access%2Dkeys", "//openapi/v1/access-keys"].entries()
        ) {
          const { body } = yield* call("POST", path, {
            body: { name: `k${i}`, role: "viewer" },
            headers: { "idempotency-key": `access-${i}` }
          })
          if (body.data?.key !== undefined) keys.push(body.data.key)
        }
        assert.isAtLeast(keys.length, 1)
        const text = stored.join("\n")
        for (
          const secret of [
            product_secret,
            device_secret,
            webhookKey,
            mesh.app_key,
            mesh.network_key,
            ...keys,
            "Sealed product",
            "Desk"
          ]
        ) {
          assert.notInclude(text, secret)
        }
        assert.isAtLeast(stored.length, 8)
      }))

    it.effect("count for every POST of the API, except for those that the documentation names", () =>
      Effect.gen(function*() {
        const operations = operationsOf(JSON.parse((yield* call("GET", "//openapi.json", { key: null })).text))
        const without: Array<string> = []
        for (const { method, path, secured } of operations) {
          if (method !== "POST" || !secured) continue
          const { body } = yield* call("POST", `/${path.replace(/\{\w+\}/g, "1")}`, {
            body: {},
            headers: { "idempotency-key": "not a key" }
          })
          if (body.data?.issues?.["idempotency-key"] === undefined) without.push(path.replace("/openapi/v1", ""))
        }
        assert.sameMembers(without, [
          "/access-keys",
          "/oss",
          "/oss/ota/{product_key}",
          "/history/query",
          "/products/{product_key}/thing-model/comparison"
        ])
      }))

    it.effect("return the new secret of a product or a device again, which stays the one after it", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { device_id } = (yield* call("POST", `/products/${product_key}/things`)).body.data
        for (const [i, path] of [`/things/${device_id}/secret`, `/products/${product_key}/secret`].entries()) {
          const rotate = call("POST", path, { body: { overlap: 0 }, headers: { "idempotency-key": `rotated-${i}` } })
          const first = yield* rotate
          assert.strictEqual(first.status, 200)
          assert.deepStrictEqual((yield* rotate).body, first.body, path)
        }
        const { device_info } = (yield* call("GET", `/things/${device_id}/detail`)).body.data
        assert.notInclude(stored.join("\n"), device_info.device_secret)
      }))

    it.effect("return a response to the access key that got it first, and to no other", () =>
      Effect.gen(function*() {
        const { key } = (yield* call("POST", "/access-keys", { body: { name: "o", role: "operator" } })).body.data
        const post = (key?: string) =>
          call("POST", "/products", {
            body: productBody,
            headers: { "idempotency-key": "of-one" },
            ...key === undefined ? {} : { key }
          })
        const first = yield* post(key)
        assert.strictEqual(first.body.code, 0)
        assert.strictEqual((yield* post(key)).text, first.text)
        const other = yield* post()
        assert.deepStrictEqual([other.status, other.body.code], [409, 40900])
      }))

    it.effect("do not keep responses that are large, and say so", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const scene = {
          name: `Large ${name}`,
          status: "enable",
          desc: "x".repeat(500),
          actions: Array.from({ length: 50 }, () => ({
            URI: "action/webhook",
            params: { URL: `https://example.com/${"y".repeat(1500)}`, method: "POST" }
          }))
        }
        const post = call("POST", "/rule-engine/scenes", { body: scene, headers: { "idempotency-key": product_key } })
        const first = yield* post
        assert.strictEqual(first.body.code, 0, first.text)
        assert.isAbove(first.text.length, 65_536)
        const again = yield* post
        assert.deepStrictEqual([again.status, again.body.code], [409, 40900])
        assert.include(again.body.message, "too large to be kept")
        const { total } = (yield* call("GET", `/rule-engine/scenes?name=${encodeURIComponent(scene.name)}`)).body.data
        assert.strictEqual(total, 1)
      }))

    it.effect("tell large bodies apart, also those that wait for 100 Continue", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const names = Array.from({ length: 2000 }, (_, i) => `${product_key}-${i}`)
        const post = (deviceNames: ReadonlyArray<string>, expect = {}) =>
          call("POST", `/products/${product_key}/batch-things`, {
            body: { device_names: deviceNames },
            headers: { "idempotency-key": `large-${product_key}`, ...expect }
          })
        const first = yield* post(names, { expect: "100-continue" })
        assert.strictEqual(first.body.code, 0, first.text)
        assert.strictEqual((yield* post(names)).text, first.text)
        assert.strictEqual((yield* post(names, { expect: "100-continue" })).text, first.text)
        const other = yield* post([...names.slice(0, -1), `${product_key}-9999`])
        assert.deepStrictEqual([other.status, other.body.code], [409, 40900])
      }))

    it.effect("keep nothing of what was refused", () =>
      Effect.gen(function*() {
        const store = yield* IdempotencyStore
        const before = yield* store.count(defaultProjectId, 1000)
        for (let i = 0; i < 5; i++) {
          const body = { name: "x".repeat(1_000_000) }
          const { status } = yield* call("POST", "/products", { body, headers: { "idempotency-key": `refused-${i}` } })
          assert.strictEqual(status, 400)
        }
        assert.strictEqual(yield* store.count(defaultProjectId, 1000), before)
      }))
  })

  layer(testApi(storage).pipe(Layer.provide(Layer.succeed(MaxIdempotencyKeys, 3))), { excludeTestServices: true })(
    `a bound of keys of idempotency on ${name}`,
    (it) => {
      it.effect("refuses new keys of the project, repeats known ones, and leaves other projects alone", () =>
        Effect.gen(function*() {
          const post = (idempotencyKey: string, key?: string) =>
            call("POST", "/products", {
              body: productBody,
              headers: { "idempotency-key": idempotencyKey },
              ...key === undefined ? {} : { key }
            })
          const first = yield* post("1")
          const more = yield* Effect.forEach(["2", "3"], (key) => post(key))
          assert.deepStrictEqual(more.map(({ status }) => status), [200, 200])
          const refused = yield* post("4")
          assert.deepStrictEqual([refused.status, refused.body.code], [429, 42900])
          assert.isAbove(Number(refused.headers["retry-after"]), 0)
          assert.strictEqual((yield* post("1")).text, first.text)
          assert.strictEqual((yield* call("POST", "/products", { body: productBody })).status, 200)
          const project_id = (yield* call("POST", "/projects", { body: { name: "Other" } })).body.data.id
          const { key } =
            (yield* call("POST", "/access-keys", { body: { name: "k", role: "operator", project_id } })).body.data
          assert.strictEqual((yield* post("5", key)).status, 200)
        }))
    }
  )
}
