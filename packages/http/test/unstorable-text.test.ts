import { call, createDevice, createProduct, type DeviceTriple, testApi, uplink } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"
import { operationsOf } from "./fuzz/ApiDescription.ts"

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`text that no storage keeps, on ${name}`, (it) => {
    it.effect("is refused as a filter of tags", () =>
      Effect.gen(function*() {
        const { body, status } = yield* call("GET", "/things?tag=a:%00")
        assert.deepStrictEqual([status, body.code, Object.keys(body.data.issues)], [400, 40001, ["tag"]])
      }))

    it.effect("is refused as a property that is set, whether its device is connected or not", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const device = (yield* createDevice(product_key)) as unknown as DeviceTriple & { readonly device_id: string }
        for (const status of ["unactive", "online"]) {
          const { body } = yield* call("GET", `/things/${device.device_id}/status`)
          assert.strictEqual(body.data.status, status)
          for (const id of ["", "\0", "\ud800", "x".repeat(129), "__proto__"]) {
            const { body, status } = yield* call("POST", `/things/${device.device_id}/properties`, {
              body: { params: Object.fromEntries([[id, 1]]) }
            })
            assert.deepStrictEqual([status, body.code, Object.keys(body.data?.issues ?? {})], [400, 40001, [
              `params.${id}`
            ]])
          }
          yield* uplink(device, "PostProperty", { body: { params: { a: 1 } } })
        }
      }))

    it.effect("is refused in each path and query, and nowhere an internal error", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { device_id, device_name } = yield* createDevice(product_key)
        const known: Readonly<Record<string, string | undefined>> = { product_key, device_id, device_name }
        const { text } = yield* call("GET", "//openapi.json")
        const operations = operationsOf(JSON.parse(text))
        const described = (JSON.parse(text) as {
          readonly paths: Record<string, Record<string, { readonly parameters?: ReadonlyArray<Parameter> }>>
        }).paths
        let asked = 0
        for (const { method, path } of operations) {
          // A stream of events has no end; its filters are those of other routes.
          if (path === "/openapi/v1/events") continue
          const parameters = described[path]![method.toLowerCase()]!.parameters ?? []
          const fill = (replaced: string, value: string) =>
            path.slice("/openapi/v1".length).replace(/\{(\w+)\}/g, (_, parameter: string) =>
              parameter === replaced ? value : known[parameter] ?? "1")
          for (const { in: place, name: parameter } of parameters) {
            // Of an unpaired surrogate, as some clients write it, nothing is left but bytes that are no UTF-8.
            for (const odd of ["%00", "a%00b", "a:%00", "%ed%a0%80"]) {
              const target = place === "path"
                ? fill(parameter, odd)
                : place === "query"
                ? `${fill("", "")}?${parameter}=${odd}`
                : undefined
              if (target === undefined) {
                continue
              }
              asked++
              const answer = yield* call(method, target, method === "GET" ? {} : { body: {} })
              assert.isBelow(answer.status, 500, `${method} ${target} ${answer.text}`)
              if (place === "path") {
                assert.include([400, 404], answer.status, `${method} ${target}`)
              }
            }
          }
        }
        assert.isAbove(asked, 300)
      }))
  })
}

interface Parameter {
  readonly name: string
  readonly in: string
}
