import { call, createProduct, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"

const level = (dataType: object) => ({
  properties: [{ id: "level", name: "Level", accessMode: "rw", dataType }]
})

const text = JSON.stringify

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`what editors ask on ${name}`, (it) => {
    it.effect("compares the thing model with versions and documents, says what breaks, and stores nothing", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const path = `/products/${product_key}/thing-model`
        const importing = (model: object) =>
          call("POST", path, { body: { model_type: "metadata", model_data: text(model) } })
        const compare = (body: object) => Effect.map(call("POST", `${path}/comparison`, { body }), ({ body }) => body)
        yield* importing(level({ type: "int", min: 0, max: 10 }))
        yield* importing({ ...level({ type: "int", min: 0, max: 20 }), events: [{ id: "alarm", name: "Alarm" }] })
        const { data: wider } = yield* compare({ from_version: 1, to_version: 2 })
        assert.deepInclude(wider, { from_version: 1, to_version: 2, compatible: false, warnings: [] })
        assert.deepStrictEqual(
          wider.breaks.map(({ id, type, whom }: Record<string, string>) => `${whom} ${type} ${id}`),
          ["applications property level", "devices property level"]
        )
        assert.deepStrictEqual(
          wider.changes.map(({ change, id }: Record<string, string>) => `${change} ${id}`),
          ["changed level", "added alarm"]
        )
        const [changed, added] = wider.changes
        assert.deepStrictEqual([changed.before.dataType.max, changed.after.dataType.max], [10, 20])
        assert.isNull(added.before)
        const same = yield* call("GET", `${path}?model_type=sdf`)
        const sdf = { model_type: "sdf", model_data: text(same.body.data.thing_model) }
        const { data: unchanged } = yield* compare(sdf)
        assert.deepInclude(unchanged, { from_version: 2, to_version: null, compatible: true, breaks: [] })
        const { data: first } = yield* compare({ from_version: 0, to_version: 1 })
        assert.deepInclude(first, { compatible: true })
        const invalid = yield* compare({
          model_type: "metadata",
          model_data: text(level({ type: "int", min: 9, max: 1 }))
        })
        assert.strictEqual(invalid.code, 40002)
        assert.isNotEmpty(Object.keys(invalid.data.issues))
        assert.strictEqual((yield* compare({ model_type: "tsl", model_data: "{" })).code, 40002)
        for (
          const [body, field] of [
            [{}, "model_data"],
            [{ model_data: "{}" }, "model_type"],
            [{ to_version: 1, ...sdf }, "to_version"],
            [{ to_version: 9 }, "to_version"],
            [{ from_version: -1, to_version: 1 }, "from_version"]
          ] as const
        ) {
          const refused = yield* compare(body)
          assert.strictEqual(refused.code, 40001, text(body))
          assert.property(refused.data.issues, field)
        }
        assert.strictEqual((yield* call("GET", `${path}?model_type=tsl`)).body.data.version, 2)
        assert.strictEqual((yield* call("POST", "/products/x/thing-model/comparison", { body: sdf })).body.code, 40401)
        const viewer = yield* call("POST", "/access-keys", { body: { name: "viewer", role: "viewer" } })
        const key = viewer.body.data.access_key
        assert.strictEqual((yield* call("POST", `${path}/comparison`, { body: sdf, key })).body.code, 0)
      }))

    it.effect("says when a cron expression comes next", () =>
      Effect.gen(function*() {
        const next = (query: Readonly<Record<string, string>>) =>
          Effect.map(call("GET", `/rule-engine/cron?${new URLSearchParams(query)}`), ({ body }) => body)
        const { data } = yield* next({ cron: "0 30 7 * * MON" })
        assert.strictEqual(data.time_zone, "UTC")
        assert.lengthOf(data.results, 5)
        for (const [i, time] of data.results.entries()) {
          const at = new Date(time)
          assert.deepStrictEqual([at.getUTCDay(), at.getUTCHours(), at.getUTCMinutes()], [1, 7, 30])
          if (i > 0) assert.strictEqual(Date.parse(time) - Date.parse(data.results[i - 1]), 7 * 86_400_000)
        }
        const inTokyo = yield* next({ cron: "0 0 9 * * *", time_zone: "Asia/Tokyo", count: "1" })
        assert.deepStrictEqual(inTokyo.data.results.map((time: string) => new Date(time).getUTCHours()), [0])
        assert.deepStrictEqual((yield* next({ cron: "0 0 0 30 2 *" })).data.results, [])
        for (
          const [query, field] of [
            [{ cron: "tomorrow" }, "cron"],
            [{ cron: "0 0 0 L * *" }, "cron"],
            [{ cron: "0 0 0 * * *", time_zone: "Nowhere" }, "time_zone"],
            [{ cron: "0 0 0 * * *", count: "21" }, "count"]
          ] as const
        ) {
          const refused = yield* next(query)
          assert.strictEqual(refused.code, 40001)
          assert.property(refused.data.issues, field)
        }
      }))

    it.effect("each template makes a product with its thing model", () =>
      Effect.gen(function*() {
        const { body } = yield* call("GET", "/product-templates")
        assert.isAtLeast(body.data.results.length, 5)
        for (const { name, product, thing_model } of body.data.results) {
          const { product_key } = yield* createProduct({ protocol_type: "", ...product, name })
          const imported = yield* call("POST", `/products/${product_key}/thing-model`, {
            body: { model_type: "metadata", model_data: text(thing_model) }
          })
          assert.deepInclude(imported.body.data, { version: 1, warnings: [] })
        }
      }))
  })
}
