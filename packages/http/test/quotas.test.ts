import { call, createProduct, ownerKey, productBody, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { createHmac } from "node:crypto"
import { storages } from "../../../vitest.storages.ts"
import { newTenant } from "./fuzz/FuzzedTenant.ts"

const tenant = (quotas: object) =>
  Effect.gen(function*() {
    const { keys, project_id } = yield* newTenant
    const set = (body: object) => call("PUT", `/projects/${project_id}/quotas`, { key: ownerKey, body })
    const { body } = yield* set(quotas)
    assert.strictEqual(body.code, 0, body.message)
    const { product_key, product_secret } = yield* createProduct({ dynamic_register: true }, { key: keys.operator })
    const generate = (device_name: string) => {
      const random = "abcdefgh"
      const text = `deviceName${device_name}productKey${product_key}random${random}`
      const sign = createHmac("sha1", product_secret!).update(text).digest("hex")
      const body = { product_key, device_name, random, sign_method: "hmacsha1", sign }
      return call("POST", "/auth/generator/device", { key: null, body })
    }
    const used = Effect.map(call("GET", "/quotas", { key: keys.viewer }), ({ body }) => body.data.used)
    return { keys, project_id, product_key, generate, set, used }
  })

for (const [name, stores] of storages) {
  layer(testApi(stores), { excludeTestServices: true })(`quotas on ${name}`, (it) => {
    it.effect("batches and single devices at the same time never exceed the quota", () =>
      Effect.gen(function*() {
        const { generate, keys, product_key, set, used } = yield* tenant({ devices: 250 })
        const path = `/products/${product_key}/batch-things`
        const batches = yield* Effect.forEach(
          Array.from({ length: 5 }),
          () => call("POST", path, { key: keys.operator, body: { num: 100 } }),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(batches.map(({ body }) => body.code).toSorted(), [0, 0, 40_900, 40_900, 40_900])
        const { body } = yield* call("POST", path, { key: keys.operator, body: { num: 51 } })
        assert.deepStrictEqual([body.code, body.message], [
          40_900,
          "The project may have 250 devices; an owner can raise its quota devices"
        ])
        assert.strictEqual((yield* used).devices, 200)
        yield* set({ devices: 201 })
        assert.strictEqual((yield* generate("Device0001")).body.code, 0)
        assert.strictEqual((yield* generate("Device0002")).body.code, 40_900)
        // A device that is there gets its triple again.
        assert.strictEqual((yield* generate("Device0001")).body.code, 0)
        const single = yield* call("POST", `/products/${product_key}/things`, { key: keys.operator })
        assert.strictEqual(single.body.code, 40_900)
      }))

    it.effect("products, keys and scenes have quotas, and room again when some are deleted", () =>
      Effect.gen(function*() {
        const { keys, product_key, used } = yield* tenant({ products: 1, scenes: 1, access_keys: 4 })
        const key = keys.admin
        const scene = (name: string) => call("POST", "/rule-engine/scenes", { key, body: { name, status: "enable" } })
        const newKey = call("POST", "/access-keys", { key, body: { name: "k", role: "viewer" } })
        assert.strictEqual((yield* call("POST", "/products", { key, body: productBody })).body.code, 40_900)
        assert.strictEqual((yield* scene("a")).body.code, 0)
        assert.strictEqual((yield* scene("b")).body.code, 40_900)
        const made = yield* newKey
        assert.strictEqual(made.body.code, 0)
        assert.strictEqual((yield* newKey).body.code, 40_900)
        yield* call("DELETE", `/access-keys/${made.body.data.id}`, { key })
        assert.strictEqual((yield* newKey).body.code, 0)
        yield* call("DELETE", `/products/${product_key}`, { key })
        assert.strictEqual((yield* call("POST", "/products", { key, body: productBody })).body.code, 0)
        assert.deepInclude(yield* used, { products: 1, scenes: 1, access_keys: 4 })
      }))

    it.effect("registrations have a rate, which waits for the next minute", () =>
      Effect.gen(function*() {
        const { generate } = yield* tenant({ registrations_per_minute: 0 })
        const { body, headers, status } = yield* generate("Device0001")
        assert.deepStrictEqual([status, body.code], [429, 42_900])
        assert.isAtMost(Number(headers["retry-after"]), 60)
      }))

    it.effect("members read the quotas of their project, an owner sets them", () =>
      Effect.gen(function*() {
        const { keys, project_id } = yield* tenant({ devices: 7 })
        const path = `/projects/${project_id}/quotas`
        assert.strictEqual((yield* call("GET", path, { key: keys.viewer })).body.data.limits.devices, 7)
        assert.strictEqual((yield* call("GET", path, { key: keys.foreign })).body.code, 40_412)
        assert.strictEqual((yield* call("PUT", path, { key: keys.admin, body: { devices: 8 } })).body.code, 40_300)
        const reset = yield* call("PUT", path, { body: { devices: null } })
        assert.strictEqual(reset.body.data.limits.devices, 1_000_000)
        assert.strictEqual((yield* call("PUT", path, { body: { devices: -1 } })).body.code, 40_001)
        assert.strictEqual((yield* call("PUT", "/projects/none/quotas", { body: {} })).body.code, 40_412)
      }))

    it.effect("uploads have a quota of bytes", () =>
      Effect.gen(function*() {
        const { keys, used } = yield* tenant({ object_bytes: 100 })
        const upload = (size: number) => {
          const raw = `--x\r\ncontent-disposition: form-data; name="file"; filename="a.bin"\r\n\r\n${
            "a".repeat(size)
          }\r\n--x--\r\n`
          return call("POST", "/oss", {
            key: keys.operator,
            raw,
            headers: { "content-type": "multipart/form-data; boundary=x" }
          })
        }
        const first = yield* upload(60)
        assert.strictEqual(first.body.code, 0, first.body.message)
        assert.strictEqual((yield* upload(60)).body.code, 40_900)
        assert.strictEqual((yield* used).object_bytes, 60)
        yield* call("DELETE", `/${new URL(first.body.data.url).pathname}`, { key: keys.operator })
        assert.strictEqual((yield* used).object_bytes, 0)
        assert.strictEqual((yield* upload(100)).body.code, 0)
      }))
  })
}
