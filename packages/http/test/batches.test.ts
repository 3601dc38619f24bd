import {
  defaultProjectId,
  DeviceId,
  type DeviceIdentity,
  DeviceName,
  DeviceSessions,
  DeviceStore,
  ProductKey,
  StoreError
} from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { call, createDevice, createProduct, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Layer } from "effect"
import { storages } from "../../../vitest.storages.ts"

const createBatch = (productKey: string, body: object) => call("POST", `/products/${productKey}/batch-things`, { body })

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`batches on ${name}`, (it) => {
    it.effect("makes 10,000 devices in one call, and deletes them with their batch", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const kept = yield* createDevice(product_key)
        const { body, status } = yield* createBatch(product_key, { num: 10_000, desc: "First run" })
        assert.deepStrictEqual([status, body.code, Object.keys(body.data)], [200, 0, ["batch_id"]])
        const { batch_id } = body.data as { readonly batch_id: number }
        const path = `/products/${product_key}/batch-things/${batch_id}`
        const read = yield* call("GET", path)
        assert.deepInclude(read.body.data, { batch_id, product_key, num: 10_000, desc: "First run" })
        const { data } = (yield* call("GET", `/things?batch_id=${batch_id}&page=100&page_size=100`)).body
        assert.deepStrictEqual([data.total, data.pages, data.results.length], [10_000, 100, 100])
        assert.deepInclude(data.results[0], { batch_id, status: "unactive", enabled_status: "enable", product_key })
        const csv = yield* call("GET", `${path}?format=csv`)
        assert.match(String(csv.headers["content-type"]), /^text\/csv/)
        const [head, ...lines] = csv.text.trimEnd().split("\r\n")
        assert.strictEqual(head, "product_key,device_name,device_secret,device_id")
        assert.strictEqual(new Set(lines.map((line) => line.split(",")[1])).size, 10_000)
        for (const line of lines) assert.match(line, /^[A-Za-z0-9]{11},[A-Za-z0-9]{20},[a-z0-9]{32},[A-Za-z0-9]{20}$/)

        const [, device_name] = lines[0]!.split(",")
        const { device_id } = (yield* call("GET", `/products/${product_key}/device-names/${device_name}/detail`))
          .body.data.device_info
        const closed = yield* Deferred.make<string>()
        const identity: DeviceIdentity = {
          deviceId: DeviceId.make(device_id),
          projectId: defaultProjectId,
          productKey: ProductKey.make(product_key),
          deviceName: DeviceName.make(device_name!),
          validateType: "weak"
        }
        yield* (yield* DeviceSessions).attach({
          device: identity,
          ip: "192.0.2.1",
          deliver: () => Effect.void,
          backlog: () => undefined,
          close: (reason) => Effect.asVoid(Deferred.succeed(closed, reason))
        })
        const removed = yield* call("DELETE", path)
        assert.deepStrictEqual(removed.body, { code: 0, message: "success", data: { batch_id } })
        assert.strictEqual(yield* Deferred.await(closed), "deleted")
        assert.strictEqual((yield* call("GET", path)).body.code, 40403)
        assert.strictEqual((yield* call("DELETE", path)).body.code, 40403)
        const left = (yield* call("GET", `/things?product_key=${product_key}`)).body.data
        assert.deepStrictEqual(left.results.map((device: { device_id: string }) => device.device_id), [kept.device_id])
      }))

    it.effect.each<readonly [object, string]>([
      [{ num: 0 }, "num"],
      [{ num: 10_001 }, "num"],
      [{ num: 1.5 }, "num"],
      [{ num: "5" }, "num"],
      [{}, "num"],
      [{ num: 1, desc: 5 }, "desc"],
      [{ device_names: [] }, "device_names"],
      [{ device_names: ["lamp-1", "lamp-1"] }, "device_names"],
      [{ device_names: ["lamp-1", "a b c"] }, "device_names[1]"],
      [{ device_names: ["abc"] }, "device_names[0]"],
      [{ device_names: "lamp-1" }, "device_names"],
      [{ num: 2, device_names: ["lamp-1"] }, "device_names"],
      [{ num: 1, desc: "x".repeat(1025) }, "desc"]
    ])("refuses a batch of %j, and stores nothing", ([body, field]) =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const answer = yield* createBatch(product_key, body)
        assert.deepStrictEqual([answer.status, answer.body.code], [400, 40001])
        assert.deepStrictEqual(Object.keys(answer.body.data.issues), [field])
        assert.strictEqual((yield* call("GET", `/things?product_key=${product_key}`)).body.data.total, 0)
      }))

    it.effect("makes devices of the given names, all or none, and lists the batches", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const names = ["lamp-0001", "lamp@0002", "lamp_0003"]
        const { batch_id } = (yield* createBatch(product_key, { device_names: names })).body.data
        const path = `/products/${product_key}/batch-things`
        const csv = yield* call("GET", `${path}/${batch_id}?format=csv`)
        assert.deepStrictEqual(csv.text.trimEnd().split("\r\n").slice(1).map((line) => line.split(",")[1]), names)
        const again = yield* createBatch(product_key, { device_names: ["lamp-0004", ...names.toReversed()] })
        assert.deepStrictEqual([again.status, again.body.code], [409, 40901])
        assert.deepStrictEqual(again.body.data, { device_names: names })
        const second = (yield* createBatch(product_key, { num: 1, device_names: ["lamp-0004"] })).body.data.batch_id
        const listed = (yield* call("GET", path)).body.data
        assert.deepStrictEqual(
          listed.results.map(({ batch_id, num }: { batch_id: number; num: number }) => [batch_id, num]),
          [[second, 1], [batch_id, 3]]
        )
        assert.deepInclude(listed, { total: 2, page: 1 })
        assert.strictEqual((yield* call("GET", "/products/missing/batch-things")).body.code, 40401)
        assert.strictEqual((yield* call("GET", `/things?product_key=${product_key}`)).body.data.total, 4)
      }))

    it.effect("knows batches of their product only", () =>
      Effect.gen(function*() {
        const [one, other] = [yield* createProduct(), yield* createProduct()]
        const { batch_id } = (yield* createBatch(one.product_key, { num: 1 })).body.data
        for (
          const [key, id] of [[other.product_key, batch_id], [one.product_key, 0], [
            one.product_key,
            "9007199254740991"
          ]]
        ) {
          const path = `/products/${key}/batch-things/${id}`
          for (const method of ["GET", "DELETE"]) {
            const { body, status } = yield* call(method, path)
            assert.deepStrictEqual([status, body.code], [404, 40403], `${method} ${path}`)
          }
        }
        assert.strictEqual((yield* call("GET", `/products/${one.product_key}/batch-things/x`)).body.code, 40001)
        assert.strictEqual((yield* createBatch("unknown", { num: 1 })).body.code, 40401)
      }))

    it.effect("devices of a cloud gateway are made one by one, with their accounts", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct({ data_source: 3, platform: 2, platform_name: "Other cloud" })
        for (const draft of [{ num: 1 }, { device_names: ["lamp1"] }]) {
          const { code, message } = (yield* createBatch(product_key, draft)).body
          assert.strictEqual(code, 40004)
          assert.include(message, `${Object.keys(draft)}: product ${product_key} is a cloud gateway`)
        }
        const missing = yield* call("POST", `/products/${product_key}/things`, { body: {} })
        assert.deepStrictEqual(Object.keys(missing.body.data.issues), ["clientid", "username"])
        const { device_id } = yield* createDevice(product_key, { clientid: "c", username: "u", password: "" })
        const { device_info } = (yield* call("GET", `/things/${device_id}/detail`)).body.data
        assert.deepInclude(device_info, {
          platform: 2,
          iot_platform: 2,
          platform_name: "Other cloud",
          data_source: 3,
          cloud_gtw_mqtt_param: { clientid: "c", username: "u", password: "" }
        })
      }))

    it.effect("lists devices by tag and by keyword", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const [one, two] = [
          yield* createDevice(product_key, { nickname: "Kitchen lamp" }),
          yield* createDevice(product_key, { nickname: "Hall lamp" })
        ]
        yield* call("PUT", `/things/${one.device_id}/tags`, { body: { tags: { room: "a:b" } } })
        const found = (query: string) =>
          Effect.map(
            call("GET", `/things?product_key=${product_key}&${query}`),
            ({ body }) => body.data.results.map((device: { device_id: string }) => device.device_id)
          )
        assert.deepStrictEqual(yield* found("tag=room:a%3Ab"), [one.device_id])
        assert.deepStrictEqual(yield* found("tag=room:a"), [])
        assert.deepStrictEqual(yield* found("keyword=Hall"), [two.device_id])
        assert.deepStrictEqual(yield* found("keyword=lamp"), [])
        const { body } = yield* call("GET", "/things?tag=room")
        assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40001, ["tag"]])
      }))
  })
}

/** A storage that is away when the second page of a batch is read. */
const breaking = Layer.effectContext(Effect.map(Effect.context<DeviceStore>(), (context) => {
  const store = Context.get(context, DeviceStore)
  return Context.make(DeviceStore, {
    ...store,
    devicesOfBatch: (projectId, batchId, page) =>
      page.after === undefined
        ? store.devicesOfBatch(projectId, batchId, page)
        : Effect.fail(
          new StoreError({ operation: "DeviceStore.devicesOfBatch", retryable: true, cause: "the storage is away" })
        )
  })
})).pipe(Layer.provideMerge(StorageMemory.layer))

layer(testApi(breaking), { excludeTestServices: true })("the file of a batch, when the storage goes away", (it) => {
  it.effect("is refused as a whole", () =>
    Effect.gen(function*() {
      const { product_key } = yield* createProduct()
      const { batch_id } = (yield* createBatch(product_key, { num: 1000 })).body.data
      const { body, status } = yield* call("GET", `/products/${product_key}/batch-things/${batch_id}?format=csv`)
      assert.deepStrictEqual([status, body.code], [503, 50300])
    }))
})
