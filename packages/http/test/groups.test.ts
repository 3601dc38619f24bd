import { defaultProjectId, DeviceId, Devices } from "@device-cloud/core"
import { eventually, SimulatedDevice } from "@device-cloud/testing"
import { call, createDevice, createProduct, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Queue } from "effect"
import { storages } from "../../../vitest.storages.ts"

const data = (method: string, path: string, body?: object) =>
  Effect.map(call(method, path, { body }), ({ body }) => {
    assert.strictEqual(body.code, 0, body.message)
    return body.data
  })

const code = (method: string, path: string, body?: object) =>
  Effect.map(call(method, path, { body }), ({ body, status }) => [status, body.code])

const issues = (method: string, path: string, body: object) =>
  Effect.map(call(method, path, { body }), ({ body }) => [body.code, ...Object.keys(body.data?.issues ?? {})])

const connect = (deviceId: string) =>
  Effect.flatMap(Devices, (devices) => devices.get(defaultProjectId, { deviceId: DeviceId.make(deviceId) })).pipe(
    Effect.flatMap(({ device }) => SimulatedDevice.connect(device))
  )

const devicesOf = (groupId: number) =>
  Effect.map(
    data("GET", `/device-groups/${groupId}/things`),
    ({ results }) => results.map(({ device_id }: { device_id: string }) => device_id)
  )

const newDevices = Effect.fnUntraced(function*(count: number) {
  const { product_key } = yield* createProduct()
  const devices = yield* Effect.forEach(Array.from({ length: count }), () => createDevice(product_key))
  return { product_key, ids: devices.map(({ device_id }) => device_id) }
})

let names = 0
const unique = (name: string) => `${name} ${++names}`

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`groups and bulk commands on ${name}`, (it) => {
    it.effect("a static group has the devices that are added to it", () =>
      Effect.gen(function*() {
        const { ids: [one, two, three] } = yield* newDevices(3)
        const title = unique("Lamps")
        const { created_at, group_id, updated_at, ...group } = yield* data("POST", "/device-groups", { name: title })
        assert.deepStrictEqual(group, { name: title, desc: "", type: "static", query: null })
        assert.strictEqual(updated_at, created_at)
        const things = `/device-groups/${group_id}/things`
        assert.deepStrictEqual(yield* data("POST", things, { device_ids: [one, two, one] }), { added: 2 })
        assert.deepStrictEqual(yield* data("POST", things, { device_ids: [two, three] }), { added: 1 })
        assert.deepStrictEqual(yield* devicesOf(group_id), [three, two, one])
        assert.deepStrictEqual(yield* data("DELETE", things, { device_ids: [two, "missing"] }), { removed: 1 })
        const groups = yield* data("GET", `/things/${one}/groups`)
        assert.deepStrictEqual(groups.results.map((found: { group_id: number }) => found.group_id), [group_id])
        assert.deepStrictEqual((yield* data("GET", `/things/${two}/groups`)).results, [])
        yield* call("DELETE", `/things/${one}`)
        assert.deepStrictEqual(yield* devicesOf(group_id), [three])
        assert.deepStrictEqual(yield* issues("POST", things, { device_ids: [three, "missing"] }), [40001, "device_ids"])
        for (const device_ids of [[], Array.from({ length: 1001 }, (_, i) => `d${i}`), "x"]) {
          assert.deepStrictEqual(yield* issues("POST", things, { device_ids }), [40001, "device_ids"])
        }
        const taken = yield* code("POST", "/device-groups", { name: title })
        assert.deepStrictEqual(taken, [409, 40901])
        assert.deepStrictEqual(yield* code("PUT", `/device-groups/${group_id}`, { query: { keyword: "x" } }), [
          400,
          40004
        ])
        const changed = yield* data("PUT", `/device-groups/${group_id}`, { desc: "All" })
        assert.deepInclude(changed, { name: title, desc: "All" })
        assert.deepStrictEqual(yield* code("DELETE", `/device-groups/${group_id}`), [200, 0])
        for (
          const [method, path, body] of [["GET", ""], ["DELETE", ""], ["GET", "/things"], ["PUT", "", {
            desc: ""
          }]] as const
        ) {
          assert.deepStrictEqual(yield* code(method, `/device-groups/${group_id}${path}`, body), [404, 40420])
        }
      }))

    it.effect("a dynamic group has the devices for which its query holds", () =>
      Effect.gen(function*() {
        const { ids: [one, two], product_key } = yield* newDevices(2)
        const query = { product_key, tags: { room: "kitchen" } }
        const { group_id, ...group } = yield* data("POST", "/device-groups", { name: unique("Kitchens"), query })
        assert.deepInclude(group, { type: "dynamic", query })
        assert.deepStrictEqual(yield* devicesOf(group_id), [])
        yield* call("PUT", `/things/${one}/tags`, { body: { tags: { room: "kitchen" } } })
        assert.deepStrictEqual(yield* devicesOf(group_id), [one])
        const reported = { product_key, reported: { power: 1 } }
        assert.deepStrictEqual((yield* data("PUT", `/device-groups/${group_id}`, { query: reported })).query, reported)
        const device = yield* connect(two!)
        yield* device.postProperties({ power: 1 })
        assert.deepStrictEqual(yield* devicesOf(group_id), [two])
        const groups = yield* data("GET", `/things/${two}/groups`)
        assert.include(groups.results.map((found: { group_id: number }) => found.group_id), group_id)
        assert.deepStrictEqual((yield* data("GET", `/things/${one}/groups`)).results, [])
        assert.deepStrictEqual(
          yield* code("POST", `/device-groups/${group_id}/things`, { device_ids: [one] }),
          [400, 40004]
        )
        for (
          const [refused, field] of [
            [{}, "query"],
            [{ reported: { power: 1 } }, "query.reported"],
            [{ reported: {}, product_key: "x".repeat(129) }, "query.product_key"],
            [{ reported: { ["x".repeat(129)]: 1, power: 1 }, product_key }, "query.reported"],
            [{ reported: { "\ud800": 1 }, product_key }, "query.reported"],
            [{ status: "broken" }, "query.status"],
            [{ tags: {} }, "query"],
            [{ tags: { room: 5 } }, "query.tags.room"],
            [{ keyword: "" }, "query.keyword"]
          ] as const
        ) {
          const answer = yield* issues("POST", "/device-groups", { name: unique("x"), query: refused })
          assert.deepStrictEqual(answer, [40001, field], JSON.stringify(refused))
        }
      }))

    it.effect("lists groups, newest first, and keeps within the quota", () =>
      Effect.gen(function*() {
        const { id } = yield* data("POST", "/projects", { name: unique("Tenant") })
        const { key } = yield* data("POST", "/access-keys", { name: "k", role: "operator", project_id: id })
        yield* data("PUT", `/projects/${id}/quotas`, { device_groups: 2 })
        const create = (name: string) => call("POST", "/device-groups", { key, body: { name } })
        yield* create("One")
        yield* create("Two")
        const third = yield* create("Three")
        assert.deepStrictEqual([third.status, third.body.code], [409, 40900])
        const listed = (yield* call("GET", "/device-groups", { key })).body.data
        assert.deepStrictEqual(listed.results.map(({ name }: { name: string }) => name), ["Two", "One"])
        yield* call("DELETE", `/device-groups/${listed.results[0].group_id}`, { key })
        assert.strictEqual((yield* create("Three")).body.code, 0)
        assert.strictEqual((yield* call("GET", "/quotas", { key })).body.data.used.device_groups, 2)
      }))

    it.effect("a bulk command asks each device of its scope, and tells how far each has come", () =>
      Effect.gen(function*() {
        const { ids: [online, offline, deleted], product_key } = yield* newDevices(3)
        const device = yield* connect(online!)
        const { group_id } = yield* data("POST", "/device-groups", { name: unique("All"), query: { product_key } })
        const params = { power: 1 }
        const created = yield* data("POST", "/bulk-commands", { group_id, params, ttl: 60 })
        assert.deepInclude(created, { service_id: "", params, ttl: 60, status: "running", total: 3 })
        yield* call("DELETE", `/things/${deleted}`)
        const path = `/bulk-commands/${created.bulk_id}`
        const bulk = yield* eventually(data("GET", path), { until: ({ status }) => status === "completed" })
        assert.strictEqual(bulk.counts.queued, 1)
        const sent = yield* Queue.take(device.received)
        assert.deepInclude(sent, { method: "thing.service.property.set", params })
        const { results } = yield* data("GET", `${path}/things`)
        const of = (id: string | undefined) => results.find(({ device_id }: { device_id: string }) => device_id === id)
        assert.strictEqual(of(online).message_id, String(sent.id))
        assert.strictEqual(of(offline).state, "queued")
        const message = yield* data("GET", `/things/${offline}/messages/${of(offline).message_id}`)
        assert.deepInclude(message, { state: "queued", params })
        assert.include(["failed", "gone"], of(deleted).state)
        assert.deepStrictEqual((yield* data("GET", `/things/${offline}/shadow`)).thing_shadow.state.desired, params)
        const queued = yield* data("GET", `${path}/things?state=queued`)
        assert.deepStrictEqual([queued.total, queued.results[0].device_id], [1, offline])
        assert.strictEqual((yield* data("GET", "/bulk-commands")).results[0].bulk_id, created.bulk_id)
        assert.deepStrictEqual(yield* code("DELETE", path), [200, 0])
        yield* eventually(data("GET", path), { until: ({ counts }) => counts.cancelled === 1 })
        assert.deepStrictEqual(yield* code("DELETE", path), [409, 40900])
        const kept = yield* data("GET", `/things/${offline}/messages/${of(offline).message_id}`)
        assert.strictEqual(kept.state, "cancelled")
      }))

    it.effect("an upgrade task takes the devices of its product that are in the group when it is made", () =>
      Effect.gen(function*() {
        const { ids: [one, two, three], product_key } = yield* newDevices(3)
        const other = yield* newDevices(1)
        const { group_id } = yield* data("POST", "/device-groups", { name: unique("Some") })
        yield* data("POST", `/device-groups/${group_id}/things`, { device_ids: [one, two, other.ids[0]] })
        const firmware = yield* data("POST", `/products/${product_key}/ota/firmwares`, {
          name: "Image",
          version: "1.0.0",
          oss_path: "https://example.com/x",
          algorithms: 1,
          hash: "0".repeat(32)
        })
        const path = `/ota/firmwares/${firmware.id}/upgrade-tasks`
        const busy = yield* data("POST", path, { scope_mode: 1, device_ids: [two] })
        const { device_count, task_id } = yield* data("POST", path, { scope_mode: 1, group_id })
        yield* data("POST", `/device-groups/${group_id}/things`, { device_ids: [three] })
        const records = yield* data("GET", `/ota/upgrade-tasks/${task_id}`)
        assert.deepStrictEqual(
          [device_count, records.results.map(({ device_id }: { device_id: string }) => device_id)],
          [1, [one]]
        )
        assert.strictEqual(busy.device_count, 1)
        assert.deepStrictEqual(yield* issues("POST", path, { scope_mode: 0, group_id }), [40001, "group_id"])
        assert.deepStrictEqual(
          yield* issues("POST", path, { scope_mode: 1, group_id, device_ids: [one] }),
          [40001, "group_id"]
        )
        assert.deepStrictEqual(
          yield* issues("POST", path, { scope_mode: 1, group_id, dynamic: true }),
          [40001, "dynamic"]
        )
        assert.deepStrictEqual(yield* code("POST", path, { scope_mode: 1, group_id: 999_999 }), [404, 40420])
        const empty = yield* data("POST", path, { scope_mode: 1, group_id })
        assert.strictEqual(empty.device_count, 1)
        const nobody = yield* data("POST", path, { scope_mode: 1, group_id })
        assert.deepInclude(nobody, { device_count: 0 })
        assert.isNotEmpty(nobody.reason)
      }))

    it.effect("a push of configurations reaches the connected devices of the group alone", () =>
      Effect.gen(function*() {
        const { ids: [one, two, away], product_key } = yield* newDevices(3)
        const [inside, outside] = [yield* connect(one!), yield* connect(two!)]
        const { group_id } = yield* data("POST", "/device-groups", { name: unique("Canary") })
        const path = `/device-groups/${group_id}/configuration/push`
        yield* data("POST", `/device-groups/${group_id}/things`, { device_ids: [one, away] })
        const { configuration_id } = yield* data("PUT", `/products/${product_key}/configuration`, {
          format: "json",
          content: "{}"
        })
        yield* data("POST", path)
        const push = yield* Queue.take(inside.received)
        assert.deepInclude(push, { method: "thing.config.push" })
        assert.deepInclude(push.params, { configId: configuration_id })
        const { results } = yield* data("GET", `/products/${product_key}/configuration/devices`)
        assert.deepStrictEqual(results.map(({ device_id }: { device_id: string }) => device_id), [one])
        assert.deepStrictEqual([...yield* Queue.clear(outside.received)], [])
        assert.deepStrictEqual(yield* code("POST", "/device-groups/999999/configuration/push"), [404, 40420])
      }))

    it.effect("checks a bulk command before it is stored, as far as it can", () =>
      Effect.gen(function*() {
        const { ids, product_key } = yield* newDevices(1)
        const model = { services: [{ id: "reset", name: "Reset", callType: "async", inputData: [] }] }
        yield* data("POST", `/products/${product_key}/thing-model`, {
          model_type: "metadata",
          model_data: JSON.stringify(model)
        })
        const params = { power: 1 }
        const group = yield* data("POST", "/device-groups", { name: unique("Empty") })
        const post = (body: object) => issues("POST", "/bulk-commands", body)
        assert.deepStrictEqual(yield* post({ params }), [40001, "device_ids"])
        assert.deepStrictEqual(yield* post({ device_ids: ids, product_key, params }), [40001, "product_key"])
        assert.deepStrictEqual(yield* post({ device_ids: [], params }), [40001, "device_ids"])
        assert.deepStrictEqual(yield* post({ device_ids: [...ids, ...ids], params }), [40001, "device_ids"])
        assert.deepStrictEqual(yield* post({ device_ids: [...ids, "missing"], params }), [40001, "device_ids"])
        assert.deepStrictEqual(yield* post({ device_ids: ids, params: {} }), [40001, "params"])
        assert.deepStrictEqual(yield* post({ device_ids: ids, params, ttl: -1 }), [40001, "ttl"])
        assert.deepStrictEqual(yield* post({ product_key, params }), [40003, "params.power"])
        assert.deepStrictEqual(yield* post({ product_key, service_id: "missing", params: {} }), [40411])
        assert.deepStrictEqual(yield* post({ product_key: "missing", params }), [40401])
        assert.deepStrictEqual(yield* post({ group_id: 999_999, params }), [40420])
        assert.deepStrictEqual(yield* post({ group_id: group.group_id, params }), [40900])
        const { bulk_id } = yield* data("POST", "/bulk-commands", { device_ids: ids, params })
        yield* eventually(data("GET", `/bulk-commands/${bulk_id}`), { until: ({ status }) => status === "completed" })
        const [device] = (yield* data("GET", `/bulk-commands/${bulk_id}/things`)).results
        assert.deepInclude(device, { state: "failed", message_id: "" })
        assert.include(device.reason, "params.power")
        assert.deepStrictEqual(yield* code("GET", "/bulk-commands/999999"), [404, 40421])
        assert.deepStrictEqual(yield* code("GET", "/bulk-commands/999999/things"), [404, 40421])
        assert.deepStrictEqual(yield* code("DELETE", "/bulk-commands/999999"), [404, 40421])
      }))
  })
}
