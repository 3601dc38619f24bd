import { AuditLog, defaultProjectId, Products } from "@device-cloud/core"
import { eventually, Fixtures } from "@device-cloud/testing"
import { call, createDevice, createProduct, ownerKey, productBody, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"
import { newTenant } from "./fuzz/FuzzedTenant.ts"

interface Entry {
  readonly key_id: string
  readonly key_name: string
  readonly action: string
  readonly resource_kind: string
  readonly resource_id: string
  readonly address: string
  readonly result: number
  readonly request_id: string
  readonly project_id: string
  readonly time: string
}

/** The log that a key sees, the newest entry first. */
const log = (key: string, query = "") =>
  Effect.map(call("GET", `/audit?limit=1000${query}`, { key }), ({ body }) => {
    assert.strictEqual(body.code, 0, body.message)
    return body.data.results as ReadonlyArray<Entry>
  })

const idOf = (key: string) => key.slice(4, 16)

/** What an entry tells, in short. */
const told = ({ action, resource_id, resource_kind, result }: Entry) => [action, resource_kind, resource_id, result]

for (const [name, stores] of storages) {
  layer(testApi(stores), { excludeTestServices: true })(`the audit log on ${name}`, (it) => {
    it.effect("tells who changed what, from where, in which request", () =>
      Effect.gen(function*() {
        const { keys, project_id } = yield* newTenant
        const key = keys.operator
        const options = { key, headers: { "x-request-id": "order-4711" } }
        const { product_key } = yield* createProduct({}, options)
        const [entry, ...rest] = yield* log(keys.admin)
        assert.deepStrictEqual(rest, [])
        const { id: _, time, ...fields } = entry as Entry & { readonly id: number }
        assert.deepStrictEqual(fields, {
          project_id,
          key_id: idOf(key),
          key_name: "test",
          action: "products.createProduct",
          resource_kind: "product",
          resource_id: product_key,
          address: "127.0.0.1",
          result: 0,
          request_id: "order-4711"
        })
        assert.isBelow(Math.abs(Date.now() - Date.parse(time)), 60_000)
      }))

    it.effect("has one entry for each change, which names what it made", () =>
      Effect.gen(function*() {
        const { keys } = yield* newTenant
        const key = keys.admin
        const ask = (method: string, path: string, body?: object) =>
          Effect.map(call(method, path, { key, body }), ({ body }) => {
            assert.strictEqual(body.code, 0, `${method} ${path}: ${body.message}`)
            return body.data
          })
        const { product_info: { product_key } } = yield* ask("POST", "/products", productBody)
        const { device_id } = yield* ask("POST", `/products/${product_key}/things`)
        const { batch_id } = yield* ask("POST", `/products/${product_key}/batch-things`, { num: 3 })
        yield* ask("PUT", `/things/${device_id}/tags`, { tags: { room: "kitchen" } })
        yield* ask("POST", `/things/${device_id}/properties`, { params: { power: 1 } })
        yield* ask("PUT", `/things/${device_id}/shadow`, { state: { desired: { power: 1 } } })
        const { id: scene_id } = yield* ask("POST", "/rule-engine/scenes", {
          name: "Evening",
          status: "enable",
          triggers: [],
          conditions: [],
          actions: []
        })
        yield* ask("POST", `/rule-engine/scenes/${scene_id}/actions`)
        const { id: key_id } = yield* ask("POST", "/access-keys", { name: "new", role: "viewer" })
        yield* ask("DELETE", `/access-keys/${key_id}`)
        const { network_key } = yield* ask("POST", "/mesh/networks")
        yield* ask("POST", "/rule-engine/webhook-key")
        yield* ask("DELETE", `/things/${device_id}`)
        assert.deepStrictEqual((yield* log(key)).map(told).toReversed(), [
          ["products.createProduct", "product", product_key, 0],
          ["devices.createDevice", "device", device_id, 0],
          ["batches.createBatch", "batch", String(batch_id), 0],
          ["devices.setDeviceTags", "device", device_id, 0],
          ["commands.setDeviceProperties", "device", device_id, 0],
          ["devices.updateDeviceShadow", "device", device_id, 0],
          ["scenes.createScene", "scene", scene_id, 0],
          ["scenes.runScene", "scene", scene_id, 0],
          ["projects.createAccessKey", "access-key", key_id, 0],
          ["projects.deleteAccessKey", "access-key", key_id, 0],
          ["mesh.createMeshNetwork", "mesh-network", `${network_key.slice(0, 8)}…`, 0],
          ["scenes.rotateWebhookKey", "", "", 0],
          ["devices.deleteDevice", "device", device_id, 0]
        ])
      }))

    it.effect("tells which requests were refused, with their codes", () =>
      Effect.gen(function*() {
        const { keys } = yield* newTenant
        yield* call("DELETE", "/products/nothing", { key: keys.operator })
        yield* call("POST", "/products", { key: keys.operator, body: { ...productBody, name: "" } })
        yield* call("POST", "/products", { key: keys.viewer, body: productBody })
        yield* call("GET", "/access-keys", { key: keys.viewer })
        yield* call("GET", "/products/nothing", { key: keys.viewer })
        yield* call("DELETE", "/products/%00%0a", { key: keys.operator })
        const wrong = keys.operator.slice(0, -1) + (keys.operator.endsWith("A") ? "B" : "A")
        yield* call("GET", "/products", { key: wrong })
        yield* call("GET", "/products", { key: `dck_${"x".repeat(12)}_${"0".repeat(43)}` })
        yield* eventually(
          Effect.map(log(keys.admin), (entries) =>
            assert.sameDeepMembers(entries.map((entry) => [entry.key_id, ...told(entry)]), [
              [idOf(keys.operator), "products.deleteProduct", "product", "nothing", 40_401],
              [idOf(keys.operator), "products.createProduct", "", "", 40_001],
              [idOf(keys.viewer), "products.createProduct", "", "", 40_300],
              [idOf(keys.viewer), "projects.listAccessKeys", "", "", 40_300],
              [idOf(keys.operator), "products.deleteProduct", "product", "��", 40_001],
              [idOf(keys.operator), "products.listProducts", "", "", 40_100]
            ]))
        )
      }))

    it.effect("tells who read secrets: one entry for each request that shows some, none for a viewer", () =>
      Effect.gen(function*() {
        const { keys } = yield* newTenant
        const { product_key } = yield* createProduct({}, { key: keys.operator })
        const before = yield* log(keys.admin)
        yield* call("GET", "/products", { key: keys.operator })
        yield* call("GET", `/products/${product_key}`, { key: keys.viewer })
        yield* call("GET", `/products/${product_key}`, { key: keys.operator })
        yield* call("GET", "/things", { key: keys.operator })
        const read = (yield* log(keys.admin)).slice(0, -before.length)
        assert.deepStrictEqual(read.map((entry) => [entry.key_id, ...told(entry)]), [
          [idOf(keys.operator), "products.getProduct", "product", product_key, 0],
          [idOf(keys.operator), "products.listProducts", "", "", 0]
        ])
      }))

    it.effect("has one entry for a request that is repeated with its Idempotency-Key", () =>
      Effect.gen(function*() {
        const { keys } = yield* newTenant
        const options = { key: keys.operator, headers: { "idempotency-key": "once" }, body: productBody }
        const first = yield* call("POST", "/products", options)
        const again = yield* call("POST", "/products", options)
        assert.strictEqual(first.text, again.text)
        assert.lengthOf(yield* log(keys.admin), 1)
      }))

    it.effect("shows a project its own entries alone; an owner sees those of any", () =>
      Effect.gen(function*() {
        const { keys, project_id } = yield* newTenant
        yield* createProduct({}, { key: keys.operator })
        assert.deepStrictEqual(yield* log(keys.foreign), [])
        assert.strictEqual((yield* call("GET", "/audit", { key: keys.operator })).body.code, 40_300)
        const foreign = yield* call("GET", `/audit?project_id=${project_id}`, { key: keys.foreign })
        assert.strictEqual(foreign.body.code, 40_300)
        const [entry] = yield* log(ownerKey, `&project_id=${project_id}&action=products.createProduct`)
        assert.strictEqual(entry?.action, "products.createProduct")
        // The refusals stand in the projects of the keys.
        yield* eventually(
          Effect.map(log(keys.foreign), (entries) =>
            assert.deepStrictEqual(entries.map(told), [["audit.listAuditEntries", "", "", 40_300]]))
        )
      }))

    it.effect("is paged by a cursor, filtered, and exported as NDJSON and CSV", () =>
      Effect.gen(function*() {
        const { keys } = yield* newTenant
        for (const product of ["=1+1", "b", "c", "d", "e"]) {
          yield* createProduct({ name: product }, { key: keys.operator })
        }
        const all = yield* log(keys.admin)
        const paged: Array<Entry> = []
        let cursor = ""
        do {
          const { body } = yield* call("GET", `/audit?limit=2${cursor}`, { key: keys.admin })
          paged.push(...body.data.results)
          cursor = body.data.next_cursor === "" ? "" : `&cursor=${body.data.next_cursor}`
        } while (cursor !== "")
        assert.deepStrictEqual(paged, all)
        assert.lengthOf(all, 5)
        const one = all[2]!
        assert.deepStrictEqual(yield* log(keys.admin, `&resource=${one.resource_id}`), [one])
        assert.lengthOf(yield* log(keys.admin, `&action=products.createProduct&key_id=${idOf(keys.operator)}`), 5)
        assert.lengthOf(yield* log(keys.admin, `&key_id=${idOf(keys.admin)}`), 0)
        assert.lengthOf(yield* log(keys.admin, "&end=2001-01-01T00:00:00Z"), 0)
        assert.lengthOf(yield* log(keys.admin, "&start=2001-01-01T00:00:00Z"), 5)
        const ndjson = yield* call("GET", "/audit?format=ndjson", { key: keys.admin })
        assert.deepStrictEqual(ndjson.text.trim().split("\n").map((line): Entry => JSON.parse(line)), [...all])
        const csv = yield* call("GET", "/audit?format=csv", { key: keys.admin })
        const [head, ...rows] = csv.text.trim().split("\r\n")
        assert.strictEqual(head, Object.keys(one).join(","))
        assert.strictEqual(rows[2], Object.values(one).map((value) => `"${value}"`).join(","))
        for (
          const bad of ["limit=0", "limit=1001", "limit=0x1", "limit=%2B1", "cursor=x", "start=yesterday", "format=xml"]
        ) {
          assert.strictEqual((yield* call("GET", `/audit?${bad}`, { key: keys.admin })).body.code, 40_001, bad)
        }
      }))

    it.effect("holds no secret", () =>
      Effect.gen(function*() {
        const { keys } = yield* newTenant
        const product = yield* createProduct({}, { key: keys.operator })
        const { body: device } = yield* call("POST", `/products/${product.product_key}/things`, { key: keys.operator })
        const { body: network } = yield* call("POST", "/mesh/networks", { key: keys.operator })
        yield* call("DELETE", `/mesh/networks/${network.data.network_key}`, { key: keys.operator })
        const { text } = yield* call("GET", "/audit", { key: keys.admin })
        const secrets = [
          product["product_secret"],
          device.data.device_secret,
          network.data.network_key,
          network.data.app_key,
          ...Object.values(keys)
        ]
        for (const secret of secrets) assert.notInclude(text, secret)
      }))

    it.effect("is written for programs without HTTP, too", () =>
      Effect.gen(function*() {
        const audit = yield* AuditLog
        const products = yield* Products
        const subject = {
          projectId: defaultProjectId,
          keyId: "",
          keyName: "nightly import",
          action: "import",
          resource: { kind: "", id: "" },
          address: "",
          requestId: ""
        }
        const { productKey } = yield* audit.carryOut(
          subject,
          products.create(defaultProjectId, Fixtures.productDraft()),
          () => 0
        )
        const [entry] = yield* audit.read(defaultProjectId, { resource: productKey }, { limit: 10 })
        assert.strictEqual(entry?.keyName, "nightly import")
        // Devices and the program itself leave no entries where nobody asked for them.
        const { device_id } = yield* createDevice(productKey)
        const { productKey: silent } = yield* products.create(defaultProjectId, Fixtures.productDraft())
        assert.deepStrictEqual(yield* audit.read(defaultProjectId, { resource: silent }, { limit: 10 }), [])
        assert.lengthOf(yield* audit.read(defaultProjectId, { resource: device_id }, { limit: 10 }), 1)
      }))
  })
}
