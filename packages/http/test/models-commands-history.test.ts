import { defaultProjectId, DeviceId, Devices } from "@device-cloud/core"
import { eventually, SimulatedDevice } from "@device-cloud/testing"
import { type ApiResponse, call, createDevice, createProduct, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Queue } from "effect"
import { readFileSync } from "node:fs"
import { everyStorage } from "../../../vitest.storages.ts"

const tsl = readFileSync(new URL("../../core/test/fixtures/air-conditioner.tsl.json", import.meta.url), "utf8")

const connect = (deviceId: string) =>
  Effect.flatMap(Devices, (devices) => devices.get(defaultProjectId, { deviceId: DeviceId.make(deviceId) })).pipe(
    Effect.flatMap(({ device }) => SimulatedDevice.connect(device))
  )

/** A product with the model of an air conditioner, and a device of it. */
const createModelled = Effect.gen(function*() {
  const { product_key } = yield* createProduct()
  const { body } = yield* importModel(product_key, "tsl", tsl)
  assert.strictEqual(body.code, 0, body.message)
  const { device_id } = yield* createDevice(product_key)
  return { product_key, device_id }
})

const importModel = (productKey: string, modelType: string, modelData: string) =>
  call("POST", `/products/${productKey}/thing-model`, { body: { model_type: modelType, model_data: modelData } })

const exported = (productKey: string, modelType = "metadata") =>
  Effect.map(
    call("GET", `/products/${productKey}/thing-model?model_type=${modelType}`),
    ({ body }) => body.data.thing_model
  )

const element = (productKey: string, method: string, body: object) =>
  call(method, `/products/${productKey}/thing-model-element`, { body })

const humidity = (max: number) => ({
  type: "property",
  element: { id: "Humidity", name: "Humidity", accessMode: "r", dataType: { type: "int", min: 0, max } }
})

/** Status, code and the paths of the issues. */
const refusal = ({ body, status }: ApiResponse) => [status, body.code, ...Object.keys(body.data?.issues ?? {})]

const message = (deviceId: string, messageId: string) =>
  Effect.map(call("GET", `/things/${deviceId}/messages/${messageId}`), ({ body }) => body.data)

const untilState = (deviceId: string, messageId: string, state: string) =>
  eventually(message(deviceId, messageId), { until: (data) => data.state === state })

for (const [name, storage] of everyStorage) {
  layer(testApi(storage), { excludeTestServices: true })(`models, commands and history on ${name}`, (it) => {
    it.effect("imports a model in each form and exports it in each", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createModelled
        const metadata = yield* exported(product_key)
        assert.strictEqual(metadata.properties.length, 9)
        for (const type of ["metadata", "tsl", "sdf"]) {
          const other = yield* createProduct()
          const document = yield* exported(product_key, type)
          const { body } = yield* importModel(other.product_key, type, JSON.stringify(document))
          assert.deepStrictEqual(body.data, { thing_model: metadata, version: 1, warnings: [] })
          assert.deepStrictEqual(yield* exported(other.product_key), metadata)
        }
        const copy = yield* createProduct()
        const path = `/products/${copy.product_key}/thing-model`
        const copied = yield* call("PUT", `${path}?source_product_key=${product_key}`)
        assert.deepStrictEqual(copied.body.data.thing_model, metadata)
        const cleared = yield* call("DELETE", path)
        assert.deepStrictEqual(cleared.body.data, {
          thing_model: { properties: [], events: [], services: [] },
          version: 2,
          warnings: []
        })
      }))

    it.effect("adds, changes and removes one element at a time, each time with a new version", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const added = yield* element(product_key, "POST", humidity(100))
        assert.deepStrictEqual(added.body.data.version, 1)
        assert.deepStrictEqual(refusal(yield* element(product_key, "POST", humidity(100))), [400, 40002, "element.id"])
        const changed = yield* element(product_key, "PUT", humidity(99))
        assert.strictEqual(changed.body.data.thing_model.properties[0].dataType.max, 99)
        const { results } = (yield* call("GET", `/products/${product_key}/thing-model/versions`)).body.data
        assert.deepStrictEqual(
          results.map(({ thing_model, version }: { version: number; thing_model: typeof changed.body.data }) => [
            version,
            thing_model.properties[0].dataType.max
          ]),
          [[2, 99], [1, 100]]
        )
        assert.deepStrictEqual(
          refusal(yield* element(product_key, "PUT", { type: "event", element: { id: "No", name: "No" } })),
          [404, 40411]
        )
        const path = `/products/${product_key}/thing-model-element`
        assert.deepStrictEqual(refusal(yield* call("DELETE", path)), [400, 40001, "type"])
        assert.deepStrictEqual(refusal(yield* call("DELETE", `${path}?type=property`)), [400, 40001, "id"])
        assert.deepStrictEqual(refusal(yield* call("DELETE", `${path}?type=property&id=No`)), [404, 40411])
        assert.strictEqual((yield* call("DELETE", `${path}?type=property&id=Humidity`)).body.data.version, 3)
        yield* element(product_key, "POST", humidity(1))
        assert.strictEqual((yield* element(product_key, "DELETE", { type: "property", id: "Humidity" })).body.code, 0)
      }))

    it.effect("refuses a model as a whole, and names each place", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createModelled
        const before = yield* exported(product_key)
        const bad = JSON.parse(tsl)
        bad.properties[1].dataType.specs.max = "1"
        bad.properties[3].identifier = "PowerSwitch"
        bad.events[1].outputData[0].dataType.type = "complex"
        assert.deepStrictEqual(refusal(yield* importModel(product_key, "tsl", JSON.stringify(bad))), [
          400,
          40002,
          "properties[1].dataType.specs.max",
          "events[1].outputData[0].dataType.type",
          "properties[3].identifier"
        ])
        for (const text of ["{", "", "[]", "null", `"text"`, "5"]) {
          assert.deepStrictEqual(refusal(yield* importModel(product_key, "metadata", text)).slice(0, 2), [400, 40002])
        }
        assert.deepStrictEqual(refusal(yield* importModel(product_key, "xml", "{}")), [400, 40001, "model_type"])
        const huge = JSON.stringify({ properties: [], note: "x".repeat(2 * 1024 * 1024) })
        assert.deepStrictEqual(refusal(yield* importModel(product_key, "metadata", huge)), [413, 41300])
        assert.deepStrictEqual(refusal(yield* call("GET", `/products/${product_key}/thing-model`)), [
          400,
          40001,
          "model_type"
        ])
        assert.deepStrictEqual(yield* exported(product_key), before)
      }))

    it.effect("warns when stored values do not fit a changed model", () =>
      Effect.gen(function*() {
        const { device_id, product_key } = yield* createModelled
        const device = yield* connect(device_id)
        yield* device.postProperties({ WindSpeed: 3, PowerSwitch: 1 })
        const narrower = JSON.parse(tsl)
        delete narrower.properties[3].dataType.specs["3"]
        narrower.properties[0].dataType = { type: "text", specs: { length: "1" } }
        const { body } = yield* importModel(product_key, "tsl", JSON.stringify(narrower))
        assert.deepStrictEqual(body.data.warnings, [
          "PowerSwitch: the stored values of 1 of the 1000 newest devices do not fit the model",
          "WindSpeed: the stored values of 1 of the 1000 newest devices do not fit the model"
        ])
      }))

    it.effect("sets properties and calls services, and shows what became of it", () =>
      Effect.gen(function*() {
        const { device_id } = yield* createModelled
        const device = yield* connect(device_id)
        const set = yield* call("POST", `/things/${device_id}/properties`, { body: { params: { PowerSwitch: true } } })
        assert.match(set.body.data.message_id, /^\d+$/)
        const { message_id } = set.body.data
        const command = yield* Queue.take(device.received)
        assert.strictEqual(command.id, message_id)
        const acked = yield* untilState(device_id, message_id, "acked")
        assert.deepInclude(acked, {
          message_id,
          type: "property",
          service_id: "",
          params: { PowerSwitch: 1 },
          code: null,
          data: {}
        })
        yield* device.answer(command, 200, { ok: 1 })
        assert.deepInclude(yield* message(device_id, message_id), { state: "succeeded", code: 200, data: { ok: 1 } })

        yield* device.disconnect
        const service = yield* call("POST", `/things/${device_id}/services/TimeReset`, {
          body: { params: { TimeZone: "UTC" }, ttl: 3600 }
        })
        const path = `/things/${device_id}/messages`
        const { results, total } = (yield* call("GET", path)).body.data
        assert.deepStrictEqual([total, results[0].message_id, results[0].state, results[0].service_id], [
          2,
          service.body.data.message_id,
          "queued",
          "TimeReset"
        ])
        assert.strictEqual(Date.parse(results[0].expires_at) - Date.parse(results[0].created_at), 3_600_000)
        const one = `${path}/${service.body.data.message_id}`
        assert.deepStrictEqual((yield* call("DELETE", one)).body, { code: 0, message: "success" })
        assert.strictEqual((yield* message(device_id, service.body.data.message_id)).state, "cancelled")
        assert.deepStrictEqual(refusal(yield* call("DELETE", `${path}/${message_id}`)), [409, 40900])
        for (const id of ["0", "x", "99999999999", "9".repeat(20), "-1"]) {
          assert.deepStrictEqual(refusal(yield* call("GET", `${path}/${id}`)), [404, 40413])
        }
      }))

    it.effect("refuses calls that cannot be right, and names the field", () =>
      Effect.gen(function*() {
        const { device_id } = yield* createModelled
        const set = (body: unknown) => Effect.map(call("POST", `/things/${device_id}/properties`, { body }), refusal)
        assert.deepStrictEqual(yield* set({ params: { WindSpeed: 9, RunSeconds: 1 } }), [
          400,
          40003,
          "params.WindSpeed",
          "params.RunSeconds"
        ])
        assert.deepStrictEqual(yield* set({ params: {} }), [400, 40001, "params"])
        assert.deepStrictEqual(yield* set({ params: [] }), [400, 40001, "params"])
        assert.deepStrictEqual(yield* set({}), [400, 40001, "params"])
        assert.deepStrictEqual(yield* set({ params: { PowerSwitch: 1 }, ttl: -1 }), [400, 40001, "ttl"])
        const service = (id: string, body: unknown) =>
          Effect.map(call("POST", `/things/${device_id}/services/${id}`, { body }), refusal)
        assert.deepStrictEqual(yield* service("Missing", { params: {} }), [404, 40411])
        assert.deepStrictEqual(yield* service("Measure", { params: {} }), [409, 40911])
        assert.deepStrictEqual(yield* service("TimeReset", { params: { TimeZone: 1 } }), [
          400,
          40003,
          "params.TimeZone"
        ])
        assert.deepStrictEqual(
          refusal(yield* call("POST", "/things/missing/properties", { body: { params: { a: 1 } } })),
          [404, 40402]
        )
        for (let i = 0; i < 100; i++) {
          yield* call("POST", `/things/${device_id}/services/TimeReset`, {
            body: { params: { TimeZone: "" } }
          })
        }
        const full = yield* call("POST", `/things/${device_id}/services/TimeReset`, {
          body: { params: { TimeZone: "" } }
        })
        assert.deepStrictEqual(refusal(full), [429, 42900])
        assert.deepStrictEqual(full.headers["retry-after"], "10")
      }))

    it.effect("sends 65,536 bytes to a device, and names the field of what is longer", () =>
      Effect.gen(function*() {
        const { device_id } = yield* createModelled
        const data = "a1".repeat(65_536)
        const sent = yield* call("POST", `/things/${device_id}/raw`, { body: { data } })
        assert.strictEqual(sent.body.code, 0, sent.body.message)
        const { body } = yield* call("GET", `/things/${device_id}/messages/${sent.body.data.message_id}`)
        assert.strictEqual(body.data.params.data, data)
        assert.deepStrictEqual(
          refusal(yield* call("POST", `/things/${device_id}/raw`, { body: { data: `${data}a1` } })),
          [400, 40001, "data"]
        )
        assert.deepStrictEqual(
          refusal(
            yield* call("POST", `/things/${device_id}/user-messages`, {
              body: { topic: "text", payload: "a".repeat(131_072) }
            })
          ),
          [400, 40001, "payload"]
        )
      }))

    it.effect("changes the shadow by its version, and shows what the device lacks", () =>
      Effect.gen(function*() {
        const { device_id } = yield* createModelled
        const put = (body: unknown) => call("PUT", `/things/${device_id}/shadow`, { body })
        assert.deepStrictEqual((yield* put({ state: { desired: { WindSpeed: 2, PowerSwitch: false } } })).body, {
          code: 0,
          message: "success"
        })
        const device = yield* connect(device_id)
        yield* device.postProperties({ PowerSwitch: 0 })
        const { thing_shadow } = (yield* call("GET", `/things/${device_id}/shadow`)).body.data
        assert.deepInclude(thing_shadow, {
          state: { desired: { WindSpeed: 2, PowerSwitch: 0 }, reported: { PowerSwitch: 0 } },
          delta: { WindSpeed: 2 },
          version: 2,
          status: "online"
        })
        const conflict = yield* put({ state: { desired: { WindSpeed: 1 } }, version: 1 })
        assert.deepStrictEqual([refusal(conflict), conflict.body.data], [[409, 40904], { version: 2 }])
        assert.strictEqual((yield* put({ state: { desired: { WindSpeed: null } }, version: 2 })).body.code, 0)
        assert.deepStrictEqual(refusal(yield* put({ state: { desired: { WindSpeed: 9 } } })), [
          400,
          40003,
          "state.desired.WindSpeed"
        ])
        assert.deepStrictEqual(refusal(yield* put({ state: {} })), [400, 40001, "state.desired"])
        const plain = yield* createDevice((yield* createProduct()).product_key)
        const many = Object.fromEntries(Array.from({ length: 129 }, (_, i) => [`p${i}`, i]))
        for (const desired of [many, { long: "x".repeat(263_000) }]) {
          const full = yield* call("PUT", `/things/${plain.device_id}/shadow`, { body: { state: { desired } } })
          assert.deepStrictEqual([full.status, full.body.code], [400, 40001])
        }
        assert.strictEqual((yield* call("GET", `/things/${plain.device_id}/shadow`)).body.data.thing_shadow.version, 0)
      }))

    it.effect("reads the history of properties and events", () =>
      Effect.gen(function*() {
        const { device_id } = yield* createModelled
        const device = yield* connect(device_id)
        yield* device.send("thing.event.property.batch.post", {
          properties: { WindSpeed: [1, 2, 3].map((value) => ({ value, time: value * 1000 })) },
          events: { Error: [{ value: { ErrorCode: 1 }, time: 1500 }] }
        })
        const history = (query: string) => call("GET", `/things/${device_id}/properties/WindSpeed/history${query}`)
        const values = (query: string) =>
          Effect.map(history(query), ({ body }) =>
            body.data.results.map(({ time, value }: { time: number; value: number }) => [time, value]))
        assert.deepStrictEqual(yield* values(""), [[3000, 3], [2000, 2], [1000, 1]])
        assert.deepStrictEqual(yield* values("?order=asc&start=1500&limit=1"), [[2000, 2]])
        assert.deepStrictEqual(yield* values("?end=1000"), [[1000, 1]])
        assert.deepStrictEqual(refusal(yield* history("?start=x&limit=1001&order=up&end=-1")), [
          400,
          40001,
          "start",
          "end",
          "limit",
          "order"
        ])
        const events = (query: string) =>
          Effect.map(call("GET", `/things/${device_id}/events${query}`), ({ body }) =>
            body.data.results)
        assert.deepStrictEqual(yield* events(""), [{ event_id: "Error", time: 1500, value: { ErrorCode: 1 } }])
        assert.deepStrictEqual(yield* events("?event_id=Other"), [])
      }))

    it.effect("replaces the tags of a device", () =>
      Effect.gen(function*() {
        const { device_id } = yield* createDevice((yield* createProduct()).product_key)
        const put = (tags: unknown) => call("PUT", `/things/${device_id}/tags`, { body: { tags } })
        const tags = Effect.map(call("GET", `/things/${device_id}/detail`), ({ body }) => body.data.device_info.tags)
        yield* put({ site: "Halle 1", "größe": "😀" })
        yield* put({ site: "Hall 2", floor: "3" })
        assert.deepStrictEqual(yield* tags, { site: "Hall 2", floor: "3" })
        const many = Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`k${i}`, "x"]))
        for (const wrong of [many, { "": "x" }, { a: 1 }, { a: "x".repeat(129) }, { a: "\0" }, [], null]) {
          const { body, status } = yield* put(wrong)
          assert.deepStrictEqual([status, body.code], [400, 40001], JSON.stringify(wrong))
        }
        assert.deepStrictEqual(yield* tags, { site: "Hall 2", floor: "3" })
        yield* put({})
        assert.deepStrictEqual(yield* tags, {})
      }))

    it.effect("answers a synchronous call with the reply, or says that there was none", () =>
      Effect.gen(function*() {
        const { device_id } = yield* createModelled
        const path = `/things/${device_id}/services/Measure`
        const measure = (body: object = {}, headers: Record<string, string> = {}) =>
          call("POST", path, { body: { params: {}, ...body }, headers })
        assert.deepStrictEqual(refusal(yield* measure()), [409, 40911])
        assert.deepStrictEqual(refusal(yield* measure({ wait: 31 })), [400, 40001, "wait"])
        const connected = yield* connect(device_id)
        const calling = yield* Effect.forkScoped(measure())
        const message = yield* Queue.take(connected.received)
        yield* connected.answer(message, 200, { length: 3 })
        assert.deepStrictEqual((yield* Fiber.join(calling)).body.data, {
          message_id: message.id,
          state: "succeeded",
          code: 200,
          message: "",
          data: { length: 3 }
        })
        // A call that comes again is the same command, whose reply has come meanwhile.
        const again = measure({ wait: 0.1 }, { "idempotency-key": `measure-${device_id}` })
        const silent = yield* again
        const { id } = yield* Queue.take(connected.received)
        assert.deepStrictEqual([silent.status, silent.body.code, silent.body.data], [409, 40920, { message_id: id }])
        yield* connected.answer({ id, method: message.method }, 200)
        assert.deepInclude((yield* again).body.data, { message_id: id, state: "succeeded" })
        assert.strictEqual(yield* Queue.size(connected.received), 0)
        // Without a wait, the response is as it always was.
        const { body } = yield* measure({ wait: 0 })
        assert.deepStrictEqual(Object.keys(body.data), ["message_id"])
      }))

    it.effect("answers a POST that comes again as it did the first time", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const path = `/products/${product_key}/things`
        const post = (key: string, body: unknown, url = path) =>
          call("POST", url, { body, headers: { "idempotency-key": key } })
        const key = `key-${product_key}`
        const first = yield* post(key, { nickname: "One" })
        const again = yield* post(key, { nickname: "One" })
        assert.deepStrictEqual([again.status, again.body], [200, first.body])
        assert.notStrictEqual(again.headers["x-request-id"], first.headers["x-request-id"])
        assert.deepStrictEqual(refusal(yield* post(key, { nickname: "Two" })), [409, 40900])
        assert.deepStrictEqual(refusal(yield* post(key, { nickname: "One" }, "/products")), [409, 40900])
        const other = yield* post(`${key}2`, { nickname: "One" })
        assert.notStrictEqual(other.body.data.device_id, first.body.data.device_id)
        // What was refused can be tried again, corrected.
        assert.deepStrictEqual(refusal(yield* post(`${key}3`, { nickname: 1 })), [400, 40001, "nickname"])
        assert.strictEqual((yield* post(`${key}3`, { nickname: "Three" })).body.code, 0)
        const wrong = yield* post("x".repeat(256), {})
        assert.deepStrictEqual(refusal(wrong), [400, 40001, "idempotency-key"])
        const many = yield* Effect.all(
          Array.from({ length: 10 }, () => post(`${key}4`, { nickname: "Four" })),
          { concurrency: "unbounded" }
        )
        const ids = many.flatMap(({ body }) => body.code === 0 ? [body.data.device_id] : [])
        assert.strictEqual(new Set(ids).size, 1)
        for (const { body } of many) assert.include([0, 40900], body.code)
        const { total } = (yield* call("GET", `/things?product_key=${product_key}`)).body.data
        assert.strictEqual(total, 4)
      }))

    it.effect("waits for the reply to a user message", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { device_id } = yield* createDevice(product_key)
        const ask = (wait: number, headers: Readonly<Record<string, string>> = {}) =>
          call("POST", `/things/${device_id}/user-messages`, {
            body: { topic: "ask", payload: "aGk=", encoding: "base64", wait },
            headers
          })
        assert.deepStrictEqual(refusal(yield* ask(1)), [409, 40911])
        assert.deepStrictEqual(refusal(yield* ask(31)), [400, 40001, "wait"])
        const connected = yield* connect(device_id)
        const late = yield* ask(0.1, { "idempotency-key": "late" })
        assert.deepStrictEqual(refusal(late), [409, 40920])
        const { id, params } = yield* Queue.take(connected.received)
        assert.deepStrictEqual([id, params], [
          late.body.data.message_id,
          { topic: "ask", payload: "aGk=", encoding: "base64" }
        ])
        const again = yield* Effect.forkScoped(ask(30, { "idempotency-key": "other" }))
        const next = yield* Queue.take(connected.received)
        yield* connected.send("user_reply", { id: next.id, payload: "hey", encoding: "utf8" })
        const { body } = yield* Fiber.join(again)
        assert.deepStrictEqual(body.data, {
          message_id: next.id,
          state: "succeeded",
          code: 200,
          message: "",
          data: { payload: "hey", encoding: "utf8" }
        })
      }))

    it.effect("broadcasts to a product once a second, which the audit log tells", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const send = (body: object, product = product_key) =>
          call("POST", `/products/${product}/broadcast`, { body: { topic: "alerts", payload: "", ...body } })
        for (
          const [body, field] of [
            [{ payload: "x".repeat(4097) }, "payload"],
            [{ payload: "x", encoding: "base64" }, "payload"],
            [{ topic: "a/#" }, "topic"],
            [{ encoding: "hex" }, "encoding"]
          ] as const
        ) {
          const { body: refused } = yield* send(body)
          assert.deepStrictEqual([refused.code, Object.keys(refused.data.issues)], [40_001, [field]])
        }
        assert.deepStrictEqual(refusal(yield* send({}, "missing")), [404, 40401])
        assert.deepStrictEqual((yield* send({ payload: "x".repeat(4096) })).body, { code: 0, message: "success" })
        const tooMany = yield* send({})
        assert.deepStrictEqual(refusal(tooMany), [429, 42900])
        assert.strictEqual(tooMany.headers["retry-after"], "1")
        const { results } = (yield* call("GET", `/audit?resource=${product_key}&action=commands.broadcast`)).body.data
        assert.strictEqual(
          results.filter(({ result }: { readonly result: number }) => result === 0).length,
          1
        )
      }))

    it.effect("takes a semicolon for a part of the path", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        assert.deepStrictEqual(refusal(yield* call("DELETE", `/products/${product_key};v=1`)), [404, 40401])
        assert.strictEqual((yield* call("GET", `/products;x/${product_key}`)).body.code, 40400)
        assert.strictEqual((yield* call("GET", `/products/${product_key}?a;b`)).body.code, 0)
      }))
  })
}
