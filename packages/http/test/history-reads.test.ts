import { DeviceId, HistoryStore, ProductKey } from "@device-cloud/core"
import { DeviceCloudClient } from "@device-cloud/http"
import { call, createDevice, createProduct, ownerKey, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { HttpServer } from "effect/http"
import { storages } from "../../../vitest.storages.ts"

const midnight = Date.UTC(2026, 0, 2)
const minute = 60_000

type Values = ReadonlyArray<readonly [property: string, time: number, value: unknown]>

/** A device with these values in its history. */
const withHistory = Effect.fnUntraced(function*(productKey: string, values: Values) {
  const device = yield* createDevice(productKey)
  yield* (yield* HistoryStore).append([{
    deviceId: DeviceId.make(device.device_id),
    samples: values.map(([propertyId, time, value]) => ({ propertyId, time: midnight + time, value: value as never })),
    events: []
  }])
  return device
})

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`reads of history on ${name}`, (it) => {
    it.effect("a plot has the points that it asks for", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { device_id } = yield* withHistory(product_key, [
          ["t", 0, 1],
          ["t", 30_000, 4],
          ["t", 40_000, "no number"],
          ["t", 59_999, -2],
          ["t", 3 * minute, 10]
        ])
        const path = `/things/${device_id}/properties/t/history`
        const range = `start=${midnight}&end=${midnight + 4 * minute - 1}&interval=60&order=asc`
        const plot = (query: string) =>
          Effect.map(call("GET", `${path}?${range}&${query}`), ({ body }) => body.data.results)
        assert.deepStrictEqual(yield* plot("aggregate=avg,min,max,first,last,count,sum"), [
          { time: midnight, avg: 1, min: -2, max: 4, first: 1, last: -2, count: 3, sum: 3 },
          { time: midnight + 3 * minute, avg: 10, min: 10, max: 10, first: 10, last: 10, count: 1, sum: 10 }
        ])
        assert.deepStrictEqual(yield* plot("aggregate=max&fill=null"), [
          { time: midnight, max: 4 },
          { time: midnight + minute, max: null },
          { time: midnight + 2 * minute, max: null },
          { time: midnight + 3 * minute, max: 10 }
        ])
        const after = `start=${midnight + minute}&end=${midnight + 2 * minute}&interval=60`
        const { body } = yield* call("GET", `${path}?${after}&aggregate=last,count&fill=previous`)
        assert.deepStrictEqual(body.data.results, [
          { time: midnight + 2 * minute, last: -2, count: 0 },
          { time: midnight + minute, last: -2, count: 0 }
        ])
      }))

    it.effect("a plot begins with the number that holds, whatever else was reported since", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { device_id } = yield* withHistory(product_key, [
          ["t", 0, 7],
          ...Array.from({ length: 99 }, (_, i) => ["t", i + 1, "no number"] as const),
          ["other", 0, "no number"]
        ])
        const range = `start=${midnight + minute}&end=${midnight + minute}&interval=60`
        const plot = (property: string) =>
          Effect.map(
            call("GET", `/things/${device_id}/properties/${property}/history?${range}&aggregate=last&fill=previous`),
            ({ body }) => body.data.results
          )
        assert.deepStrictEqual(yield* plot("t"), [{ time: midnight + minute, last: 7 }])
        assert.deepStrictEqual(yield* plot("other"), [{ time: midnight + minute, last: null }])
      }))

    it.effect("the typed client reads values, points and series", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { device_id } = yield* withHistory(product_key, [["t", 0, 1], ["t", 1000, "warm"]])
        const baseUrl = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
        yield* Effect.gen(function*() {
          const { history } = yield* DeviceCloudClient
          const params = { device_id: DeviceId.make(device_id), property_id: "t" }
          const values = yield* history.listPropertyHistory({ params, query: { start: midnight, order: "asc" } })
          assert.deepStrictEqual(values.data.results, [
            { time: midnight, value: 1 },
            { time: midnight + 1000, value: "warm" }
          ])
          const plot = { aggregate: ["avg", "count"], start: midnight, end: midnight, interval: 60 } as const
          const points = yield* history.listPropertyHistory({ params, query: plot })
          assert.deepStrictEqual(points.data.results, [{ time: midnight, avg: 1, count: 1 }])
          const { data: { series } } = yield* history.queryHistory({
            payload: { devices: [{ device_id: params.device_id }], properties: ["t"], ...plot }
          })
          assert.deepStrictEqual(series.map(({ results }) => results), [points.data.results])
          const query = { property: ["t"], format: "csv" } as const
          const csv = yield* history.exportProductHistory({
            params: { product_key: ProductKey.make(product_key) },
            query
          })
          assert.lengthOf(csv.split("\r\n"), 4)
        }).pipe(Effect.provide(DeviceCloudClient.layer({ baseUrl, accessKey: Redacted.make(ownerKey) })))
      }))

    it.effect("a plot that does not fit names its fields", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { device_id } = yield* createDevice(product_key)
        const issues = (query: string) =>
          Effect.map(
            call("GET", `/things/${device_id}/properties/t/history?${query}`),
            ({ body }) => [body.code, ...Object.keys(body.data.issues)]
          )
        assert.deepStrictEqual(yield* issues("aggregate=max"), [40001, "start", "interval"])
        assert.deepStrictEqual(yield* issues("interval=60&fill=null"), [40001, "interval", "fill"])
        assert.deepStrictEqual(yield* issues("aggregate=max,median&interval=0&fill=linear"), [
          40001,
          "aggregate[1]",
          "interval",
          "fill"
        ])
        assert.deepStrictEqual(yield* issues("aggregate=max&start=0&interval=60"), [40001, "interval"])
        assert.deepStrictEqual(yield* issues("aggregate=max,max&start=0&interval=2592000"), [40001, "aggregate"])
        const { body } = yield* call(
          "GET",
          "/things/missing/properties/t/history?aggregate=max&start=0&interval=2592000"
        )
        assert.strictEqual(body.code, 40402)
      }))

    it.effect("one query reads many devices, and each series has its own outcome", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const one = yield* withHistory(product_key, [["t", 0, 1], ["t", 1000, 2], ["h", 0, "high"]])
        const two = yield* withHistory(product_key, [["t", 5, 7]])
        const project_id = (yield* call("POST", "/projects", { body: { name: "Other" } })).body.data.id
        const { key } =
          (yield* call("POST", "/access-keys", { body: { name: "k", role: "operator", project_id } })).body.data
        const query = (body: object, options: object = {}) => call("POST", "/history/query", { ...options, body })
        const devices = [
          { device_id: one.device_id },
          { product_key, device_name: two["device_name"]! },
          { product_key, device_name: "nobody" },
          { device_id: "nothing" }
        ]
        const { body } = yield* query({ devices, properties: ["t", "h"], order: "asc", limit: 1 })
        const named = { product_key, property_id: "t", code: 0, message: "success" }
        const results = [{ time: midnight, value: 1 }]
        assert.deepStrictEqual(body.data.series.slice(0, 2), [
          { ...named, device_id: one.device_id, device_name: one["device_name"], results },
          {
            ...named,
            device_id: one.device_id,
            device_name: one["device_name"],
            property_id: "h",
            results: [{ time: midnight, value: "high" }]
          }
        ])
        assert.deepInclude(body.data.series[2], {
          device_id: two.device_id,
          results: [{ time: midnight + 5, value: 7 }]
        })
        assert.deepStrictEqual(
          body.data.series.slice(4).map((
            { code, device_id, device_name, results }: Record<string, unknown>
          ) => [code, device_id, device_name, results]),
          [[40402, "", "nobody", []], [40402, "", "nobody", []], [40402, "nothing", "", []], [40402, "nothing", "", []]]
        )
        const plot = { aggregate: ["sum"], start: midnight, end: midnight, interval: 3600 }
        const points = yield* query({ devices: devices.slice(0, 2), properties: ["t"], ...plot })
        assert.deepStrictEqual(
          points.body.data.series.map(({ results }: { readonly results: unknown }) => results),
          [[{ time: midnight, sum: 3 }], [{ time: midnight, sum: 7 }]]
        )
        // Another project sees nothing of it.
        const foreign = yield* query({ devices, properties: ["t"] }, { key })
        assert.deepStrictEqual(foreign.body.data.series.map(({ code }: { readonly code: number }) => code), [
          40402,
          40402,
          40402,
          40402
        ])
      }))

    it.effect("a query is bounded, and a read for roles, scopes and the audit log", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const [own, other] = [
          yield* withHistory(product_key, [["t", 0, 1]]),
          yield* withHistory((yield* createProduct()).product_key, [["t", 0, 2]])
        ]
        const devices = [{ device_id: own.device_id }, { device_id: other.device_id }]
        const query = (body: object, options: object = {}) => call("POST", "/history/query", { ...options, body })
        const issues = (body: object) =>
          Effect.map(query(body), ({ body }) => [body.code, ...Object.keys(body.data.issues)])
        const properties = (count: number) => Array.from({ length: count }, (_, i) => `p${i}`)
        assert.deepStrictEqual(yield* issues({ devices, properties: properties(101) }), [40001, "properties"])
        assert.deepStrictEqual(yield* issues({ devices, properties: properties(26), limit: 1000 }), [40001, "limit"])
        const plot = { aggregate: ["avg"], start: 0, end: 999_000, interval: 1 }
        assert.deepStrictEqual(yield* issues({ devices, properties: properties(26), ...plot }), [40001, "interval"])
        assert.deepStrictEqual(yield* issues({ devices: [], properties: [] }), [40001, "devices", "properties"])
        const scopes = { products: [product_key], actions: ["history:read"] }
        const created = yield* call("POST", "/access-keys", { body: { name: "plots", role: "viewer", scopes } })
        const { id, key } = created.body.data
        const { body } = yield* query({ devices, properties: ["t"] }, { key })
        assert.deepStrictEqual(body.data.series.map(({ code }: { readonly code: number }) => code), [0, 40402])
        assert.deepStrictEqual((yield* call("GET", `/audit?key_id=${id}`)).body.data.results, [])
      }))

    it.effect("exports a device and a product as CSV, which no spreadsheet runs, and as NDJSON", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const strange = "=cmd|' /C calc'!A0"
        const [one, two] = [
          yield* withHistory(product_key, [
            ["t", 0, -1.5],
            ["t", 1, strange],
            ["t", 2, "say \"hi\",\r\nthen go"],
            ["@p", 0, { a: [1, null] }],
            ["u", 0, true]
          ]),
          yield* withHistory(product_key, [["t", 0, 3]])
        ]
        const device = `/things/${one.device_id}/history/export`
        const csv = yield* call("GET", device)
        const row = (property: string, time: number, value: string) =>
          `"${one.device_id}","${one["device_name"]}","${property}",${midnight + time},${value}\r\n`
        assert.strictEqual(csv.headers["content-type"], "text/csv; charset=utf-8")
        assert.strictEqual(csv.headers["content-disposition"], "attachment; filename=\"history.csv\"")
        const [head, ...lines] = csv.text.split(/(?<=\r\n)(?!then)/)
        assert.strictEqual(head, "device_id,device_name,property_id,time,value\r\n")
        assert.deepStrictEqual(lines.toSorted(), [
          row("'@p", 0, `"{""a"":[1,null]}"`),
          row("t", 0, "-1.5"),
          row("t", 1, `"'${strange}"`),
          row("t", 2, `"say ""hi"",\r\nthen go"`),
          row("u", 0, `"true"`)
        ])
        const ndjson = (path: string) =>
          Effect.map(
            call("GET", path),
            ({ text }) => text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line))
          )
        const range = `start=${midnight + 1}&end=${midnight + 1}`
        assert.deepStrictEqual(yield* ndjson(`${device}?format=ndjson&property=t&property=u&${range}`), [
          {
            device_id: one.device_id,
            device_name: one["device_name"],
            property_id: "t",
            time: midnight + 1,
            value: strange
          }
        ])
        const product = yield* ndjson(`/products/${product_key}/history/export?format=ndjson&property=t`)
        assert.deepStrictEqual(
          product.map(({ device_id, value }: Record<string, unknown>) => [device_id, value]),
          [
            [one.device_id, -1.5],
            [one.device_id, strange],
            [one.device_id, "say \"hi\",\r\nthen go"],
            [two.device_id, 3]
          ]
        )
        assert.strictEqual((yield* call("GET", "/things/missing/history/export")).body.code, 40402)
        assert.strictEqual((yield* call("GET", "/products/missing/history/export")).body.code, 40401)
        assert.strictEqual((yield* call("GET", `${device}?format=xml`)).body.code, 40001)
      }))
  })
}
