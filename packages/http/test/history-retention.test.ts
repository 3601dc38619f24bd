import { call, createProduct, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`how long history is kept on ${name}`, (it) => {
    it.effect("a product has days of its own, or those of all", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const path = `/products/${product_key}/history-retention`
        const none = { days: null, default_days: 0 }
        assert.deepStrictEqual((yield* call("GET", path)).body.data, none)
        const set = { days: 30, default_days: 0 }
        assert.deepStrictEqual((yield* call("PUT", path, { body: { days: 30 } })).body.data, set)
        assert.deepStrictEqual((yield* call("GET", path)).body.data, set)
        assert.deepStrictEqual((yield* call("DELETE", path)).body.data, none)
        assert.deepStrictEqual((yield* call("GET", path)).body.data, none)
      }))

    it.effect("days are from 1 to 3650, and of a product that is there", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const path = `/products/${product_key}/history-retention`
        for (const days of [0, 3651, 1.5, null, "30"]) {
          const { body } = yield* call("PUT", path, { body: { days } })
          assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40_001, ["days"]])
        }
        for (const method of ["GET", "PUT", "DELETE"] as const) {
          const options = method === "PUT" ? { body: { days: 1 } } : {}
          assert.strictEqual((yield* call(method, "/products/missing/history-retention", options)).body.code, 40_401)
        }
      }))
  })
}
