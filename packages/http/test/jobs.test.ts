import { call, createDevice, createProduct, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"

const document = { operation: "calibrate" }

const createDevices = Effect.fnUntraced(function*(count: number) {
  const { product_key } = yield* createProduct()
  const ids = yield* Effect.forEach(
    Array.from({ length: count }),
    () => Effect.map(createDevice(product_key), ({ device_id }) => device_id)
  )
  return { product_key, ids }
})

const create = (body: object) => call("POST", "/jobs", { body: { name: "Calibrate", document, ...body } })

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`jobs on ${name}`, (it) => {
    it.effect("a job is created for devices or a product, read with its devices, cancelled and removed", () =>
      Effect.gen(function*() {
        const { ids: [one, two], product_key } = yield* createDevices(2)
        const { body: { data: all } } = yield* create({ product_key, description: "All", timeout: 60 })
        assert.deepInclude(all, { name: "Calibrate", description: "All", document, timeout: 60, product_key })
        assert.deepInclude(all, { status: "in_progress" })
        const { body: { data: named } } = yield* create({ device_ids: [two, two] })
        assert.deepInclude(named, { description: "", timeout: 0, product_key: "", status: "in_progress" })
        const { results, total } = (yield* call("GET", "/jobs?page_size=2")).body.data
        assert.deepStrictEqual(results, [named, all])
        assert.isAtLeast(total, 2)
        const detail = (yield* call("GET", `/jobs/${all.job_id}`)).body.data
        assert.deepStrictEqual(detail.counts, {
          queued: 2,
          sent: 0,
          in_progress: 0,
          succeeded: 0,
          failed: 0,
          rejected: 0,
          timed_out: 0,
          cancelled: 0
        })
        const devices = (yield* call("GET", `/jobs/${all.job_id}/devices?state=queued`)).body.data
        assert.sameMembers(
          devices.results.map(({ device_id }: { readonly device_id: string }) => device_id),
          [one, two]
        )
        assert.deepInclude(devices.results[0], { state: "queued", progress: 0, details: {} })
        assert.strictEqual((yield* call("GET", `/jobs/${all.job_id}/devices?state=sent`)).body.data.total, 0)
        assert.strictEqual((yield* call("DELETE", `/jobs/${all.job_id}`)).body.code, 40_900)
        for (let i = 0; i < 2; i++) {
          assert.deepStrictEqual((yield* call("POST", `/jobs/${all.job_id}/cancel`)).body, {
            code: 0,
            message: "success"
          })
        }
        assert.deepInclude((yield* call("GET", `/jobs/${all.job_id}`)).body.data, { status: "cancelled" })
        const log = (yield* call("GET", `/audit?resource=${all.job_id}`)).body.data.results as ReadonlyArray<
          { readonly action: string; readonly resource_kind: string }
        >
        assert.includeDeepMembers(
          log.map(({ action, resource_kind }) => [action, resource_kind]),
          [["jobs.createJob", "job"], ["jobs.cancelJob", "job"]]
        )
        assert.strictEqual((yield* call("DELETE", `/jobs/${all.job_id}`)).body.code, 0)
        assert.strictEqual((yield* call("GET", `/jobs/${all.job_id}`)).body.code, 40_415)
      }))

    it.effect("what is no job is refused and not stored", () =>
      Effect.gen(function*() {
        const { ids: [device], product_key } = yield* createDevices(1)
        const before = (yield* call("GET", "/jobs")).body.data.total
        for (
          const [body, field] of [
            [{}, "device_ids"],
            [{ device_ids: [device], product_key }, "device_ids"],
            [{ device_ids: [] }, "device_ids"],
            [{ device_ids: [device], timeout: -1 }, "timeout"],
            [{ device_ids: [device], name: " " }, "name"],
            [{ device_ids: [device], document: [] }, "document"],
            [{ device_ids: [device], document: { a: "x".repeat(32_768) } }, "document"]
          ] as const
        ) {
          const { body: refused } = yield* create(body)
          assert.deepStrictEqual([refused.code, Object.keys(refused.data.issues)], [40_001, [field]])
        }
        assert.strictEqual((yield* create({ device_ids: [device, "missing"] })).body.code, 40_402)
        assert.strictEqual((yield* create({ product_key: "missing" })).body.code, 40_401)
        assert.strictEqual((yield* call("GET", "/jobs")).body.data.total, before)
        for (const path of ["/jobs/999999999", "/jobs/999999999/devices"]) {
          assert.strictEqual((yield* call("GET", path)).body.code, 40_415)
        }
        assert.strictEqual((yield* call("POST", "/jobs/999999999/cancel")).body.code, 40_415)
      }))

    it.effect("a job of a product without devices is completed, and counts for the quota until it is removed", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const used = Effect.map(call("GET", "/quotas"), ({ body }) => body.data.used.jobs as number)
        const count = yield* used
        const { body: { data } } = yield* create({ product_key })
        assert.strictEqual(data.status, "completed")
        assert.strictEqual((yield* call("POST", `/jobs/${data.job_id}/cancel`)).body.code, 40_900)
        assert.strictEqual(yield* used, count + 1)
        yield* call("PUT", "/projects/default/quotas", { body: { jobs: count + 1 } })
        assert.strictEqual((yield* create({ product_key })).body.code, 40_900)
        assert.strictEqual((yield* call("DELETE", `/jobs/${data.job_id}`)).body.code, 0)
        assert.strictEqual((yield* create({ product_key })).body.code, 0)
        yield* call("PUT", "/projects/default/quotas", { body: { jobs: null } })
      }))
  })
}
