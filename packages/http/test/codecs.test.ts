import { call, createProduct, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"

const codec = {
  reports: [{
    name: "climate",
    method: "thing.event.property.post",
    parts: [
      { type: "constant", hex: "a1" },
      { type: "int", size: 2, scale: 0.1, to: "params.temperature" },
      { type: "checksum", algorithm: "sum8" }
    ]
  }]
}

const raw = Effect.map(createProduct({ data_format: "raw" }), ({ product_key }) => `/products/${product_key}/codec`)

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`codecs on ${name}`, (it) => {
    it.effect("a codec is stored, read, replaced and removed", () =>
      Effect.gen(function*() {
        const path = yield* raw
        assert.deepInclude((yield* call("GET", path)).body.data, { codec: null, version: 0, updated_at: "" })
        assert.deepInclude((yield* call("PUT", path, { body: { codec } })).body.data, { codec, version: 1 })
        assert.deepInclude((yield* call("GET", path)).body.data, { codec, version: 1 })
        assert.deepInclude((yield* call("PUT", path, { body: { codec: {} } })).body.data, { codec: {}, version: 2 })
        assert.strictEqual((yield* call("DELETE", path)).body.code, 0)
        assert.strictEqual((yield* call("DELETE", path)).body.code, 0)
        assert.deepInclude((yield* call("GET", path)).body.data, { codec: null, version: 3 })
      }))

    it.effect("a dry run converts both ways, with a codec that is not stored, too", () =>
      Effect.gen(function*() {
        const path = yield* raw
        const tryOut = (body: object) => Effect.map(call("POST", `${path}/try`, { body }), ({ body }) => body)
        const message = { method: "thing.event.property.post", params: { temperature: 23.5 } }
        assert.deepInclude(yield* tryOut({ direction: "reports", hex: "A100EB8c" }), { code: 40_001 })
        assert.deepStrictEqual((yield* tryOut({ direction: "reports", hex: "A100EB8c", codec })).data, {
          hex: "a100eb8c",
          message
        })
        yield* call("PUT", path, { body: { codec } })
        assert.deepStrictEqual((yield* tryOut({ direction: "reports", message })).data, { hex: "a100eb8c", message })
        assert.deepStrictEqual((yield* tryOut({ direction: "reports", hex: "a100eb8d" })).data.issues, {
          "reports[0].parts[2]": ["expected the checksum 8c, not 8d"]
        })
        assert.deepStrictEqual(
          yield* tryOut({ direction: "reports", message: { ...message, params: { temperature: 9999 } } }),
          {
            code: 40_003,
            message: "params.temperature: expected a number from -3276.8 to 3276.7",
            data: { issues: { "params.temperature": ["expected a number from -3276.8 to 3276.7"] } }
          }
        )
        for (
          const [body, field] of [
            [{ direction: "reports" }, "hex"],
            [{ direction: "reports", hex: "a", message }, "hex"],
            [{ direction: "reports", hex: "a" }, "hex"],
            [{ direction: "sideways", hex: "aa" }, "direction"]
          ] as const
        ) {
          const refused = yield* tryOut(body)
          assert.deepStrictEqual([refused.code, Object.keys(refused.data.issues)], [40_001, [field]])
        }
        assert.deepInclude((yield* call("GET", path)).body.data, { version: 1 })
      }))

    it.effect("what is wrong with a codec is named by its path, and nothing is stored", () =>
      Effect.gen(function*() {
        const path = yield* raw
        const issuesOf = (codec: unknown) =>
          Effect.map(call("PUT", path, { body: { codec } }), ({ body }) => [body.code, Object.keys(body.data.issues)])
        const parts = (...parts: ReadonlyArray<unknown>) => ({
          commands: [{ method: "thing.service.property.set", parts }]
        })
        assert.deepStrictEqual(yield* issuesOf(parts({ type: "uint", size: 9, to: "params.a" })), [
          40_001,
          ["codec.commands[0].parts[0].size"]
        ])
        assert.deepStrictEqual(yield* issuesOf(parts({ type: "uint", size: 1, to: "state" })), [
          40_001,
          ["codec.commands[0].parts[0].to"]
        ])
        const labels = { 0: "off", on: "on" }
        assert.deepStrictEqual(yield* issuesOf(parts({ type: "uint", size: 1, to: "params.a", labels })), [
          40_001,
          ["codec.commands[0].parts[0].labels"]
        ])
        assert.deepStrictEqual(yield* issuesOf(parts({ type: "text", length: -1, to: "params.a" })), [
          40_001,
          ["codec.commands[0].parts[0].length"]
        ])
        const { body: unknown } = yield* call("PUT", path, { body: { codec: parts({ type: "word" }) } })
        assert.match(
          unknown.message,
          /^codec\.commands\[0\]\.parts\[0\]: Expected a part of type uint, int, float, .* or choice$/
        )
        assert.deepStrictEqual(yield* issuesOf({ reports: [{ method: "thing.service.property.set", parts: [] }] }), [
          40_001,
          ["codec.reports[0].method"]
        ])
        assert.deepStrictEqual(yield* issuesOf("code"), [40_001, ["codec"]])
        const inside = "{\"type\":\"object\",\"parts\":["
        const deep = yield* call("PUT", path, {
          raw: `{"codec":{"reports":[{"method":"thing.event.property.post","parts":[${inside.repeat(20_000)}${
            "]}".repeat(20_000)
          }]}]}}`
        })
        assert.deepStrictEqual([deep.body.code, Object.keys(deep.body.data.issues)], [40_001, ["codec"]])
        const long = { reports: [{ name: "x".repeat(70_000), method: "thing.event.property.post", parts: [] }] }
        assert.deepStrictEqual(yield* issuesOf(long), [40_001, ["codec"]])
        assert.deepInclude((yield* call("GET", path)).body.data, { codec: null, version: 0 })
      }))

    it.effect("only raw products of the project have one", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const refused = yield* call("PUT", `/products/${product_key}/codec`, { body: { codec } })
        assert.deepStrictEqual([refused.status, refused.body.code], [400, 40_004])
        for (const [method, path] of [["GET", ""], ["PUT", ""], ["DELETE", ""], ["POST", "/try"]] as const) {
          const { body } = yield* call(method, `/products/missing/codec${path}`, {
            body: { codec, direction: "reports", hex: "" }
          })
          assert.strictEqual(body.code, 40_401)
        }
      }))
  })
}
