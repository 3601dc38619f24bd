import {
  ConnectRefusals,
  defaultProjectId,
  DeviceId,
  DeviceName,
  Devices,
  DeviceStore,
  ProductKey
} from "@device-cloud/core"
import { eventually, SimulatedDevice } from "@device-cloud/testing"
import { call, createDevice, createProduct, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"

const connect = (deviceId: string) =>
  Effect.flatMap(Devices, (devices) => devices.get(defaultProjectId, { deviceId: DeviceId.make(deviceId) })).pipe(
    Effect.flatMap(({ device }) => SimulatedDevice.connect(device))
  )

const detail = (deviceId: string) =>
  Effect.map(call("GET", `/things/${deviceId}/detail`), ({ body }) => body.data.device_info)

const status = (deviceId: string) =>
  Effect.map(call("GET", `/things/${deviceId}/status`), ({ body }) => body.data.status)

const act = (deviceId: string, action: string) =>
  Effect.map(call("PUT", `/things/${deviceId}/status`, { body: { action } }), ({ body }) => body)

const done = { code: 0, message: "success" }

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`devices on ${name}`, (it) => {
    it.effect("says why a device could not connect", () =>
      Effect.gen(function*() {
        const product = yield* createProduct()
        const { device_id, device_name } = yield* createDevice(product.product_key)
        const of = Effect.map(call("GET", `/things/${device_id}/connect-refusals`), ({ body }) => body.data.results)
        assert.deepStrictEqual(yield* of, [])
        const { note } = yield* ConnectRefusals
        const device = { productKey: ProductKey.make(product.product_key), deviceName: DeviceName.make(device_name!) }
        const refused = { device, address: "2001:db8::7", reason: "wrong signature", returnCode: 4 }
        note(refused)
        note({ ...refused, address: "2001:db8::8" })
        note({ ...refused, device: undefined })
        const [{ first_time, time, ...rest }, ...others] = yield* eventually(of, {
          until: ({ length }) => length === 1
        })
        assert.deepStrictEqual(others, [])
        assert.isTrue(Date.parse(first_time) <= Date.parse(time))
        assert.deepStrictEqual(rest, {
          times: 2,
          address: "2001:db8:0:0::/64",
          reason: "wrong signature",
          return_code: 4
        })
        assert.strictEqual((yield* call("GET", "/things/missing/connect-refusals")).body.code, 40402)
      }))

    it.effect("says when a device was online, page by page", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { device_id } = yield* createDevice(product_key)
        const path = `/things/${device_id}/presence`
        const read = (query = "") => Effect.map(call("GET", path + query), ({ body }) => body.data)
        assert.deepStrictEqual(yield* read(), { status: "unactive", since: "", cursor: "", results: [] })
        yield* connect(device_id!)
        const later = yield* connect(device_id!)
        yield* later.disconnect
        const { cursor, results, since, status } = yield* eventually(read(), {
          until: ({ results }) => results.length === 3
        })
        assert.deepStrictEqual([status, since, cursor], ["offline", results[0].time, ""])
        const [offline, takeover, online] = results
        const { entry_id, node, time: _, ...rest } = online
        assert.deepStrictEqual(rest, {
          kind: "online",
          version: 1,
          address: "127.0.0.1",
          transport: "other",
          gateway: null,
          reason: ""
        })
        assert.isAbove(node.length, 0)
        assert.deepInclude(takeover, { kind: "takeover", version: null, node, reason: "" })
        assert.deepInclude(offline, { kind: "offline", version: 2, node, reason: "the connection has ended" })
        const first = yield* read("?limit=2")
        assert.deepStrictEqual([first.results, first.cursor], [[offline, takeover], takeover.entry_id])
        assert.deepStrictEqual((yield* read(`?limit=2&before=${first.cursor}`)).results, [online])
        assert.deepStrictEqual(yield* read(`?before=${entry_id}`), { status, since, cursor: "", results: [] })
        for (const query of ["?before=yesterday", "?limit=0", "?limit=201"]) {
          assert.strictEqual((yield* call("GET", path + query)).body.code, 40001)
        }
        assert.strictEqual((yield* call("GET", "/things/missing/presence")).body.code, 40402)
        yield* call("DELETE", `/things/${device_id}`)
        assert.strictEqual((yield* call("GET", path)).body.code, 40402)
      }))

    it.effect("creates a device and shows it by id and by name with all fields of the specification", () =>
      Effect.gen(function*() {
        const product = yield* createProduct()
        const { body } = yield* call("POST", `/products/${product.product_key}/things`, { body: { nickname: "Oven" } })
        const { created_at, device_id, device_name, device_secret, updated_at, ...rest } = body.data
        assert.deepStrictEqual(rest, {
          product_key: product.product_key,
          nickname: "Oven",
          status: "unactive",
          register_at: "",
          batch_id: 0,
          enabled_status: "enable",
          ip: "",
          firmware_version: ""
        })
        assert.match(device_id, /^[A-Za-z0-9]{20}$/)
        assert.match(device_name, /^[A-Za-z0-9]{20}$/)
        assert.match(device_secret, /^[a-z0-9]{32}$/)
        assert.strictEqual(updated_at, created_at)

        const info = yield* detail(device_id)
        assert.deepStrictEqual(info, {
          ...body.data,
          product_secret: product["product_secret"],
          product_name: "Thermometer",
          product_id: product["id"],
          node_type: "direct",
          protocol_type: "",
          validate_type: "weak",
          data_format: "json",
          auth_type: "secret",
          device_type: "",
          time_zone: "",
          platform: 0,
          iot_platform: 0,
          platform_name: "",
          data_source: 0,
          diagnosis_enabled: false,
          access_key: "",
          cloud_gtw_mqtt_param: null,
          cloud_gtw_device_uuid: "",
          topics: [],
          sub_amount: 0,
          is_mocker: false,
          bound: false,
          mac: "",
          tags: {}
        })
        const byName = yield* call("GET", `/products/${product.product_key}/device-names/${device_name}/detail`)
        assert.deepStrictEqual(byName.body.data, { device_info: info })
        const { results } = (yield* call("GET", `/things?product_key=${product.product_key}`)).body.data
        assert.deepStrictEqual(results, [info])
        const tags = { time_zone: "Asia/Tokyo" }
        yield* call("PUT", `/things/${info.device_id}/tags`, { body: { tags } })
        const tagged = yield* call("GET", `/things/${info.device_id}/detail`)
        assert.deepInclude(tagged.body.data.device_info, { ...tags, tags })
      }))

    it.effect("changes the nickname", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { device_id, device_name } = yield* createDevice(product_key, { nickname: "Oven" })
        const put = (body: unknown) => call("PUT", `/things/${device_id}`, { body })
        assert.deepStrictEqual((yield* put({ nickname: "Küche", device_name: "other" })).body, done)
        const changed = yield* detail(device_id)
        assert.deepInclude(changed, { nickname: "Küche", device_name })
        assert.isTrue(Date.parse(changed.updated_at) >= Date.parse(changed.created_at))
        assert.deepStrictEqual((yield* put({ nickname: "" })).body, done)
        assert.strictEqual((yield* detail(device_id)).nickname, "")
        for (const body of [{}, { nickname: null }, { nickname: 5 }, { nickname: "x".repeat(129) }]) {
          const answer = yield* put(body)
          assert.deepStrictEqual([answer.body.code, Object.keys(answer.body.data.issues)], [40001, ["nickname"]])
        }
        assert.strictEqual(
          (yield* put({ nickname: "x".repeat(129) })).body.message,
          "nickname: Expected at most 128 characters"
        )
        assert.strictEqual((yield* call("PUT", "/things/missing", { body: { nickname: "" } })).body.code, 40402)
      }))

    it.effect("creates a device with a name of the caller, once", () =>
      Effect.gen(function*() {
        const [one, other] = [yield* createProduct(), yield* createProduct()]
        const create = (product_key: string, device_name: unknown) =>
          call("POST", `/products/${product_key}/things`, { body: { device_name } })
        const attempts = yield* Effect.forEach(
          Array.from({ length: 5 }),
          () => create(one.product_key, "Lamp-1_@.:"),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(attempts.map(({ body }) => body.code).toSorted(), [0, ...Array(4).fill(40901)])
        const refused = attempts.find(({ status }) => status === 409)!
        assert.deepStrictEqual(refused.body.data, { device_names: ["Lamp-1_@.:"] })
        assert.include(refused.body.message, "Lamp-1_@.:")
        assert.strictEqual((yield* create(other.product_key, "Lamp-1_@.:")).body.data.device_name, "Lamp-1_@.:")
        for (const name of ["abc", "a".repeat(33), "a b c d", "a/b/c", "a+b#", "", 5]) {
          const { body } = yield* create(one.product_key, name)
          assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40001, ["device_name"]], String(name))
        }
        assert.strictEqual((yield* call("GET", `/things?product_key=${one.product_key}`)).body.data.total, 1)
      }))

    it.effect("creates a device without a body, with an empty one and with null", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const path = `/products/${product_key}/things`
        for (
          const options of [{}, { body: {} }, { body: null }, { body: { nickname: null, unknown: 1 } }, { raw: "" }]
        ) {
          const { body } = yield* call("POST", path, options)
          assert.deepStrictEqual([body.code, body.data?.nickname], [0, ""], JSON.stringify(options))
        }
      }))

    it.effect("refuses bad drafts and unknown products, and creates nothing", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const path = `/products/${product_key}/things`
        const wrong = yield* call("POST", path, { body: { nickname: 7, clientid: {}, password: "p".repeat(257) } })
        assert.deepStrictEqual([wrong.status, wrong.body.code], [400, 40001])
        assert.hasAllKeys(wrong.body.data.issues, ["nickname", "clientid", "password"])
        const unfit = yield* call("POST", path, { body: { clientid: "c", cloud_gtw_device_uuid: "u" } })
        assert.deepStrictEqual([unfit.status, unfit.body.code], [400, 40004])
        assert.include(unfit.body.message, "clientid, cloud_gtw_device_uuid")
        const nowhere = yield* call("POST", "/products/missing/things", { body: {} })
        assert.deepStrictEqual([nowhere.status, nowhere.body.code], [404, 40401])
        assert.strictEqual((yield* call("GET", `/things?product_key=${product_key}`)).body.data.total, 0)
      }))

    it.effect("answers every route of an unknown device with 40402", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        for (const id of ["missing", "x".repeat(128), "%F0%9F%92%A1", "a%2Fb", "'--"]) {
          for (
            const [method, path, body] of [
              ["GET", `/things/${id}/detail`],
              ["GET", `/things/${id}/status`],
              ["GET", `/things/${id}/properties`],
              ["GET", `/things/${id}/shadow`],
              ["GET", `/products/${product_key}/device-names/${id}/detail`],
              ["GET", `/products/missing/device-names/${id}/detail`],
              ["PUT", `/things/${id}/status`, { action: "enable" }],
              ["DELETE", `/things/${id}`]
            ] as const
          ) {
            const answer = yield* call(method, path, { body })
            assert.deepStrictEqual([answer.status, answer.body.code], [404, 40402], `${method} ${path}`)
          }
        }
        for (const id of ["a%00b", "x".repeat(129), "x".repeat(5000)]) {
          const { body } = yield* call("GET", `/things/${id}/detail`)
          assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40001, ["device_id"]])
        }
      }))

    it.effect("shows what a device reports: values, times, status", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { device_id } = yield* createDevice(product_key)
        const path = `/things/${device_id}`
        assert.deepStrictEqual((yield* call("GET", `${path}/properties`)).body.data, { properties: {} })
        const empty = (yield* call("GET", `${path}/shadow`)).body.data.thing_shadow
        assert.deepInclude(empty, {
          state: { desired: {}, reported: {} },
          metadata: { desired: {}, reported: {} },
          timestamp: 0,
          status: "unactive",
          version: 0
        })

        const device = yield* connect(device_id)
        yield* device.postProperties({
          temperature: 21.5,
          odd: { value: "\0\ud800", time: 1_795_231_554_300 },
          gone: null
        })
        const values = { temperature: 21.5, odd: "\0\ud800", gone: null }
        assert.deepStrictEqual((yield* call("GET", `${path}/properties`)).body.data, { properties: values })
        const { thing_shadow } = (yield* call("GET", `${path}/shadow`)).body.data
        assert.deepStrictEqual(thing_shadow.state, { desired: {}, reported: values })
        assert.deepStrictEqual(thing_shadow.metadata.reported.odd, { timestamp: 1_795_231_554 })
        assert.deepStrictEqual([thing_shadow.version, thing_shadow.status], [1, "online"])
        assert.closeTo(thing_shadow.metadata.reported.temperature.timestamp, thing_shadow.timestamp, 1)

        const info = yield* detail(device_id)
        assert.deepStrictEqual([info.status, info.ip], ["online", "127.0.0.1"])
        assert.match(info.register_at, /^\d{4}-/)
        yield* device.disconnect
        assert.strictEqual(yield* status(device_id), "offline")
        assert.strictEqual((yield* detail(device_id)).register_at, info.register_at)
      }))

    it.effect("removes a reported value, once, and no role below operator does", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { device_id } = yield* createDevice(product_key)
        yield* (yield* connect(device_id)).postProperties({ a: 1, b: 2 })
        const path = `/things/${device_id}/shadow`
        const viewer = (yield* call("POST", "/access-keys", { body: { name: "v", role: "viewer" } })).body.data.key
        assert.strictEqual((yield* call("DELETE", `${path}/reported/a`, { key: viewer })).status, 403)
        assert.deepStrictEqual((yield* call("DELETE", `${path}/reported/a`)).body, done)
        assert.strictEqual((yield* call("DELETE", `${path}/reported/a`)).body.code, 40411)
        assert.strictEqual((yield* call("DELETE", "/things/unknown/shadow/reported/a")).body.code, 40402)
        const { thing_shadow } = (yield* call("GET", path)).body.data
        assert.deepStrictEqual([thing_shadow.state.reported, thing_shadow.version], [{ b: 2 }, 2])
      }))

    it.effect("enables, disables, binds and unbinds", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { device_id } = yield* createDevice(product_key)
        for (const action of ["disble", "disable"]) {
          const device = yield* connect(device_id)
          assert.deepStrictEqual(yield* act(device_id, action), done)
          assert.strictEqual(yield* device.closed, "disabled")
          assert.deepInclude(yield* detail(device_id), { enabled_status: "disable", status: "offline" })
          assert.strictEqual((yield* Effect.flip(connect(device_id)))._tag, "DeviceDisabled")
          assert.deepStrictEqual(yield* act(device_id, "disable"), done)
          for (const path of ["properties", "services/reboot"]) {
            const refused = yield* call("POST", `/things/${device_id}/${path}`, { body: { params: { power: 1 } } })
            assert.deepStrictEqual([refused.status, refused.body.code], [403, 40301], path)
          }
          assert.strictEqual((yield* call("GET", `/things/${device_id}/messages`)).body.data.total, 0)
          assert.deepStrictEqual(yield* act(device_id, "enable"), done)
          assert.deepInclude(yield* detail(device_id), { enabled_status: "enable" })
        }
        assert.deepStrictEqual(yield* act(device_id, "bind"), done)
        assert.strictEqual((yield* detail(device_id)).bound, true)
        assert.deepStrictEqual(yield* act(device_id, "unbind"), done)
        assert.strictEqual((yield* detail(device_id)).bound, false)
        for (const body of [{ action: "explode" }, { action: 1 }, {}]) {
          const wrong = yield* call("PUT", `/things/${device_id}/status`, { body })
          assert.deepStrictEqual([wrong.body.code, Object.keys(wrong.body.data.issues)], [40001, ["action"]])
        }
      }))

    it.effect("deletes a device, cuts it off, and once only, also when asked twice at once", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { device_id } = yield* createDevice(product_key)
        const device = yield* connect(device_id)
        yield* device.postProperties({ a: 1 })
        const remove = Effect.map(call("DELETE", `/things/${device_id}`), ({ body }) => body.code)
        const codes = yield* Effect.all(Array.from({ length: 5 }, () => remove), { concurrency: "unbounded" })
        assert.deepStrictEqual(codes.toSorted(), [0, 40402, 40402, 40402, 40402])
        assert.strictEqual(yield* device.closed, "deleted")
        assert.strictEqual((yield* call("GET", `/things/${device_id}/shadow`)).body.code, 40402)
      }))

    it.effect("lists by product, batch, enabled status and status, all combined", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const other = yield* createProduct()
        const online = yield* createDevice(product_key)
        const disabled = yield* createDevice(product_key)
        const unactive = yield* createDevice(product_key)
        const elsewhere = yield* createDevice(other.product_key)
        const device = yield* Effect.flatMap(Devices, (devices) =>
          devices.get(defaultProjectId, { deviceId: DeviceId.make(online.device_id) }))
        yield* SimulatedDevice.connect(device.device)
        yield* Effect.scoped(connect(disabled.device_id))
        yield* act(disabled.device_id, "disable")
        const { id: _, ...like } = device.device
        yield* (yield* DeviceStore).insertMany(defaultProjectId, ProductKey.make(product_key), [{
          ...like,
          deviceId: DeviceId.make("batched"),
          deviceName: (yield* detail(unactive.device_id)).device_name.toLowerCase(),
          batchId: 4711,
          createdAt: device.device.createdAt + 60_000
        }])
        const ids = (query: string) =>
          Effect.map(call("GET", `/things?${query}`), ({ body }) =>
            body.data.results.map(({ device_id }: { readonly device_id: string }) =>
              device_id
            ))
        const mine = `product_key=${product_key}`
        const three = [unactive.device_id, disabled.device_id, online.device_id]
        assert.deepStrictEqual(yield* ids(mine), ["batched", ...three])
        assert.deepStrictEqual(yield* ids(`product_key=${other.product_key}`), [elsewhere.device_id])
        assert.deepStrictEqual(yield* ids("product_key=missing"), [])
        assert.deepStrictEqual(yield* ids("batch_id=4711"), ["batched"])
        assert.deepStrictEqual(yield* ids(`${mine}&batch_id=0`), three)
        assert.deepStrictEqual(yield* ids(`${mine}&batch_id=4712`), [])
        assert.deepStrictEqual(yield* ids(`${mine}&enabled_status=disable`), [disabled.device_id])
        assert.deepStrictEqual(yield* ids(`${mine}&enabled_status=enable&status=unactive`), [
          "batched",
          unactive.device_id
        ])
        assert.deepStrictEqual(yield* ids(`${mine}&status=online`), [online.device_id])
        assert.deepStrictEqual(yield* ids(`${mine}&status=offline`), [disabled.device_id])
        assert.deepStrictEqual(yield* ids(`${mine}&status=offline&enabled_status=enable`), [])
        assert.deepStrictEqual(yield* ids(`${mine}&page_size=1&page=3`), [disabled.device_id])
        for (
          const query of [
            "status=sleeping",
            "enabled_status=on",
            "batch_id=x",
            "batch_id=-1",
            "batch_id=9007199254740992"
          ]
        ) {
          const { body } = yield* call("GET", `/things?${query}`)
          assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40001, [query.split("=")[0]]], query)
        }
      }))
  })
}
