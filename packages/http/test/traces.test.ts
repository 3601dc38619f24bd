import { call, createDevice, createProduct, type DeviceTriple, testApi, uplink } from "@device-cloud/testing/http"
import { eventually } from "@device-cloud/testing"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"

const model = {
  properties: [{ id: "level", name: "Level", accessMode: "rw", dataType: { type: "int", min: 0, max: 10 } }]
}

const createTriple = Effect.gen(function*() {
  const { product_key } = yield* createProduct()
  yield* call("POST", `/products/${product_key}/thing-model`, {
    body: { model_type: "metadata", model_data: JSON.stringify(model) }
  })
  return (yield* createDevice(product_key)) as unknown as DeviceTriple & { readonly device_id: string }
})

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`traces on ${name}`, (it) => {
    it.effect("are switched on and off, and read page by page", () =>
      Effect.gen(function*() {
        const device = yield* createTriple
        const path = `/things/${device.device_id}/trace`
        const read = (query = "") => Effect.map(call("GET", path + query), ({ body }) => body.data)
        assert.deepStrictEqual(yield* read(), { until: "", dropped: 0, cursor: 0, results: [] })
        for (const minutes of [0, 61, 1.5, "1"]) {
          assert.strictEqual((yield* call("PUT", path, { body: { minutes } })).body.code, 40001)
        }
        const { body } = yield* call("PUT", path, { body: { minutes: 5 } })
        assert.deepStrictEqual(yield* read(), { until: body.data.until, dropped: 0, cursor: 0, results: [] })
        const wrong = { ...device, device_secret: "wrong" }
        assert.strictEqual((yield* uplink(wrong, "PostProperty", { body: { params: { level: 1 } } })).body.code, 40110)
        yield* uplink(device, "PostProperty", { body: { params: { level: 1 } } })
        const refusal = yield* uplink(device, "PostProperty", { body: { params: { level: 11, token: "hush" } } })
        const { cursor, dropped, results } = yield* eventually(read(), { until: ({ results }) => results.length === 3 })
        const [refused, accepted, misfit] = results
        assert.deepInclude(refused, {
          kind: "refused",
          transport: "http",
          address: "127.0.0.1",
          payload: null,
          reply: null
        })
        assert.include(refused.reason, "signature")
        assert.deepInclude(accepted, {
          kind: "uplink",
          transport: "http",
          topic: "PostProperty",
          gateway: null,
          reason: ""
        })
        assert.deepStrictEqual(JSON.parse(accepted.payload.text).params, { level: 1 })
        assert.deepInclude(accepted.reply, { code: 200, message: "success", issues: {} })
        const { level, token } = refusal.body.data
        assert.deepStrictEqual(misfit.reply.issues, { "params.level": [level], "params.token": [token] })
        assert.notInclude(misfit.payload.text, "hush")
        assert.deepStrictEqual([dropped, cursor], [0, misfit.entry_id])
        const page = yield* read("?after=0&limit=2")
        assert.deepStrictEqual(page.results, [refused, accepted])
        assert.deepStrictEqual((yield* read(`?after=${page.cursor}`)).results, [misfit])
        assert.deepStrictEqual(yield* read(`?after=${cursor}`), {
          until: body.data.until,
          dropped,
          cursor,
          results: []
        })
        assert.strictEqual((yield* call("DELETE", path)).body.code, 0)
        assert.isAtMost(Date.parse((yield* read()).until), Date.now())
        yield* uplink(device, "PostProperty", { body: { params: { level: 2 } } })
        assert.lengthOf((yield* read()).results, 3)
        assert.strictEqual((yield* call("DELETE", path)).body.code, 0)
        const range = "limit: Expected a value between 1 and 200"
        for (const [limit, expected] of [["0", range], ["201", range], ["x", "limit: Expected a whole number"]]) {
          const { code, message } = (yield* call("GET", `${path}?limit=${limit}`)).body
          assert.deepStrictEqual([code, message], [40001, expected])
        }
      }))

    it.effect("a project has so many at a time, and changes are in the audit log", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const ids: Array<string> = []
        for (let i = 0; i < 21; i++) ids.push((yield* createDevice(product_key))["device_id"]!)
        const start = (id: string) => call("PUT", `/things/${id}/trace`, { body: { minutes: 1 } })
        for (const id of ids.slice(0, 20)) assert.strictEqual((yield* start(id)).body.code, 0)
        assert.strictEqual((yield* start(ids[20]!)).body.code, 40900)
        assert.strictEqual((yield* start(ids[0]!)).body.code, 0)
        assert.strictEqual((yield* start("missing")).body.code, 40402)
        yield* call("DELETE", `/things/${ids[0]}/trace`)
        assert.strictEqual((yield* start(ids[20]!)).body.code, 0)
        const { body } = yield* call("GET", `/audit?limit=1000`)
        const ended = body.data.results.filter(({ action }: { action: string }) => action === "traces.stopTrace")
        assert.isAtLeast(ended.length, 1)
      }))
  })
}
