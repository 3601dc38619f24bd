import {
  call,
  callTo,
  createDevice,
  createProduct,
  type DeviceTriple,
  testApi,
  uplink
} from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { HttpServer } from "effect/http"
import { createHash } from "node:crypto"
import { storages } from "../../../vitest.storages.ts"

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")

const ask = (device: DeviceTriple) =>
  Effect.map(
    uplink(device, "PostSysMsg", { body: { method: "thing.config.get", params: { configScope: "product" } } }),
    ({ body }) => body
  )

/** Fetches a file of this server. */
const fetchFile = Effect.fnUntraced(function*(url: string) {
  const base = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
  return yield* callTo(base, "GET", `/${new URL(url).pathname}`, { key: null })
})

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`remote configuration on ${name}`, (it) => {
    it.effect("a device fetches the configuration of its product, and its own before that", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct({ validate_type: "none" })
        const device = yield* createDevice(product_key)
        const triple = device as unknown as DeviceTriple
        const ofProduct = `/products/${product_key}/configuration`
        const ofDevice = `/things/${device.device_id}/configuration`
        assert.strictEqual((yield* ask(triple)).data.device_code, 6713)
        const content = "{\"interval\":60,\"name\":\"°\"}"
        const stored = (yield* call("PUT", ofProduct, { body: { format: "json", content } })).body.data
        assert.deepInclude(stored, { version: 1, content, size: Buffer.byteLength(content), sha256: sha256(content) })
        assert.deepStrictEqual((yield* ask(triple)).data, {
          configId: stored.configuration_id,
          configSize: stored.size,
          sign: stored.sha256,
          signMethod: "Sha256",
          url: stored.url,
          getType: "file"
        })
        assert.strictEqual((yield* fetchFile(stored.url)).text, content)
        const own = (yield* call("PUT", ofDevice, { body: { format: "text", content: "mode=2" } })).body.data
        assert.strictEqual((yield* ask(triple)).data.configId, own.configuration_id)
        const { results } = (yield* call("GET", `${ofProduct}/devices`)).body.data
        assert.strictEqual(results.length, 1)
        assert.deepInclude(results[0], {
          device_id: device.device_id,
          configuration_id: own.configuration_id,
          state: "offered"
        })
        yield* call("DELETE", ofDevice)
        assert.strictEqual((yield* fetchFile(own.url)).status, 404)
        assert.strictEqual((yield* ask(triple)).data.configId, stored.configuration_id)
      }))

    it.effect("the latest ten versions are kept with their files", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const path = `/products/${product_key}/configuration`
        const urls: Array<string> = []
        for (let i = 1; i <= 11; i++) {
          urls.push((yield* call("PUT", path, { body: { format: "text", content: `${i}` } })).body.data.url)
        }
        const { results } = (yield* call("GET", path)).body.data
        assert.deepStrictEqual(
          results.map(({ content }: { readonly content: string }) => content),
          Array.from({ length: 10 }, (_, i) => `${11 - i}`)
        )
        assert.strictEqual((yield* fetchFile(urls[0]!)).status, 404)
        assert.strictEqual((yield* fetchFile(urls[1]!)).text, "2")
      }))

    it.effect("what is no configuration is refused, and so is a push of none", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const path = `/products/${product_key}/configuration`
        for (
          const [body, field] of [
            [{ format: "json", content: "{" }, "content"],
            [{ format: "text", content: "°".repeat(40_000) }, "content"],
            [{ format: "text", content: "x".repeat(65_537) }, "content"],
            [{ format: "text", content: "a\0b" }, "content"],
            [{ format: "xml", content: "" }, "format"]
          ] as const
        ) {
          const { body: refused } = yield* call("PUT", path, { body })
          assert.deepStrictEqual([refused.code, Object.keys(refused.data.issues)], [40_001, [field]])
        }
        assert.deepStrictEqual((yield* call("GET", path)).body.data, { results: [] })
        assert.strictEqual((yield* call("POST", `${path}/push`)).body.code, 40_900)
        assert.strictEqual((yield* call("GET", "/products/missing/configuration")).body.code, 40_401)
        assert.strictEqual((yield* call("POST", "/things/missing/configuration/push")).body.code, 40_402)
      }))
  })
}
