import type { SignMethod } from "@device-cloud/core"
import {
  call,
  createDevice,
  createProduct,
  type DeviceTriple,
  sign,
  signedQuery,
  testApi,
  uplink
} from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"

const createTriple = Effect.gen(function*() {
  const { product_key } = yield* createProduct()
  return (yield* createDevice(product_key)) as unknown as DeviceTriple & { readonly device_id: string }
})

const detail = (deviceId: string) =>
  Effect.map(call("GET", `/things/${deviceId}/detail`), ({ body }) => body.data.device_info)

interface DynamicProduct {
  readonly product_key: string
  readonly product_secret: string
}

const dynamicProduct = Effect.map(
  createProduct({ dynamic_register: true }),
  (product) => product as unknown as DynamicProduct
)

const register = Effect.fnUntraced(function*(
  { product_key, product_secret }: DynamicProduct,
  mac: string,
  fields: Readonly<Record<string, unknown>> = {}
) {
  const { random = "12345", sign_method = "hmacsha1" } = fields as Readonly<Record<string, string>>
  const signature = yield* sign(
    sign_method as SignMethod,
    product_secret,
    `mac${mac}productKey${product_key}random${random}`
  )
  return yield* call("POST", "/auth/register/device", {
    key: null,
    body: { product_key, random, mac, sign_method, sign: signature, ...fields }
  })
})

const generate = Effect.fnUntraced(function*(
  { product_key, product_secret }: DynamicProduct,
  device_name: string,
  fields: Readonly<Record<string, unknown>> = {}
) {
  const { random = "12345", sign_method = "hmacmd5" } = fields as Readonly<Record<string, string>>
  const signature = yield* sign(
    sign_method as SignMethod,
    product_secret,
    `deviceName${device_name}productKey${product_key}random${random}`
  )
  return yield* call("POST", "/auth/generator/device", {
    key: null,
    body: { product_key, random, device_name, sign_method, sign: signature, ...fields }
  })
})

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`device access on ${name}`, (it) => {
    it.effect("a mac gets a device that was created beforehand, and the same one until it has been active", () =>
      Effect.gen(function*() {
        const product = yield* dynamicProduct
        const created = yield* createDevice(product.product_key)
        const first = yield* register(product, "AA:BB:CC:DD:EE:FF")
        assert.deepStrictEqual(first.body, {
          code: 0,
          message: "success",
          data: {
            product_key: product.product_key,
            device_name: created["device_name"]!,
            device_secret: created["device_secret"]!
          }
        })
        assert.deepStrictEqual((yield* register(product, "AA:BB:CC:DD:EE:FF")).body, first.body)
        const none = yield* register(product, "00:00:00:00:00:01")
        assert.deepStrictEqual([none.status, none.body.code], [409, 40905])
        yield* uplink(first.body.data, "PostProperty", { body: { params: {} } })
        const active = yield* register(product, "AA:BB:CC:DD:EE:FF")
        assert.deepStrictEqual([active.status, active.body.code], [409, 40905])
        assert.strictEqual((yield* detail(created.device_id)).mac, "AA:BB:CC:DD:EE:FF")
      }))

    it.effect("hundreds of devices that register at the same time get a device each", () =>
      Effect.gen(function*() {
        const product = yield* dynamicProduct
        yield* Effect.forEach(Array.from({ length: 100 }), () => createDevice(product.product_key), {
          concurrency: 20
        })
        const macs = Array.from({ length: 160 }, (_, i) => `mac-${i}`)
        const answers = yield* Effect.forEach([...macs, ...macs], (mac) => register(product, mac), {
          concurrency: "unbounded"
        })
        const names = answers.flatMap(({ body }) => body.code === 0 ? [body.data.device_name as string] : [])
        assert.strictEqual(new Set(names).size, 100)
        for (const { body } of answers) assert.include([0, 40905], body.code)
        for (let i = 0; i < macs.length; i++) {
          const [one, again] = [answers[i]!.body, answers[i + macs.length]!.body]
          if (one.code === 0 && again.code === 0) assert.deepStrictEqual(one.data, again.data)
        }
        // Who got one gets it again.
        const [winner] = answers.flatMap(({ body }, i) =>
          body.code === 0 ? [[macs[i % macs.length]!, body] as const] : []
        )
        assert.deepStrictEqual((yield* register(product, winner![0])).body, winner![1])
      }))

    it.effect("a device chooses its name, and gets the same triple until it has been active", () =>
      Effect.gen(function*() {
        const product = yield* dynamicProduct
        const first = yield* generate(product, "device01")
        assert.strictEqual(first.body.code, 0)
        assert.strictEqual(first.body.data.device_name, "device01")
        assert.match(first.body.data.device_secret, /^[a-z0-9]{32}$/)
        assert.deepStrictEqual((yield* generate(product, "device01", { sign_method: "hmacsha1" })).body, first.body)
        // It is not given to anybody else.
        assert.strictEqual((yield* register(product, "mac")).body.code, 40905)
        yield* uplink(first.body.data, "PostProperty", { body: { params: {} } })
        assert.strictEqual((yield* generate(product, "device01")).body.code, 40905)
      }))

    it.effect.each<readonly [string, string, Readonly<Record<string, unknown>>, number, string]>([
      ["register", "mac", { random: "1234" }, 40001, "random"],
      ["register", "mac", { random: "é".repeat(11) }, 40001, "random"],
      ["register", "mac", { mac: "" }, 40001, "mac"],
      ["register", "mac", { sign_method: "hmacsha256" }, 40001, "sign_method"],
      ["register", "mac", { sign: 1 }, 40001, "sign"],
      ["register", "mac", { product_key: "unknown" }, 40401, ""],
      ["register", "mac", { sign: "0".repeat(40) }, 40110, ""],
      ["generate", "short", {}, 40001, "device_name"],
      ["generate", "a".repeat(21), {}, 40001, "device_name"],
      ["generate", "device-01", {}, 40001, "device_name"],
      ["generate", "device01", { random: "123456789012345678901" }, 40001, "random"],
      ["generate", "device01", { product_key: "unknown" }, 40401, ""],
      ["generate", "device01", { sign: "" }, 40110, ""]
    ])("%s %s with %j is refused with %i", ([route, subject, fields, code, field]) =>
      Effect.gen(function*() {
        const product = yield* dynamicProduct
        const { body, status } = yield* (route === "register" ? register : generate)(product, subject, fields)
        assert.deepStrictEqual([status, body.code], [Math.floor(code / 100), code])
        if (field !== "") assert.deepStrictEqual(Object.keys(body.data.issues), [field])
        const { body: { data } } = yield* call("GET", `/things?product_key=${product.product_key}`)
        assert.strictEqual(data.total, 0)
      }))

    it.effect("registration is off unless the product says so, and only for who knows its secret", () =>
      Effect.gen(function*() {
        const product = (yield* createProduct()) as unknown as DynamicProduct
        assert.deepStrictEqual((yield* register(product, "mac")).body.code, 40302)
        assert.deepStrictEqual((yield* generate(product, "device01")).body.code, 40302)
      }))

    it.effect("public SDKs register a device by its name, with a form", () =>
      Effect.gen(function*() {
        const product = yield* dynamicProduct
        const { device_name, device_secret } = (yield* createDevice(product.product_key)) as unknown as DeviceTriple
        const form = Effect.fnUntraced(function*(name: string, signMethod: SignMethod, fields: object = {}) {
          const random = "0cgwn7ya3lyn"
          const text = `deviceName${name}productKey${product.product_key}random${random}`
          return yield* call("POST", "//auth/register/device", {
            key: null,
            raw: new URLSearchParams({
              productKey: product.product_key,
              deviceName: name,
              random,
              sign: (yield* sign(signMethod, product.product_secret, text)).toUpperCase(),
              signMethod,
              ...fields
            }).toString(),
            headers: { "content-type": "application/x-www-form-urlencoded" }
          })
        })
        const expected = {
          code: 200,
          message: "success",
          data: { productKey: product.product_key, deviceName: device_name, deviceSecret: device_secret }
        }
        assert.deepStrictEqual((yield* form(device_name, "hmacsha1")).body, expected)
        assert.deepStrictEqual((yield* form(device_name, "hmacsha256")).body, expected)
        assert.strictEqual((yield* form("unknown", "hmacsha1")).body.code, 6100)
        assert.strictEqual((yield* form(device_name, "hmacsha1", { sign: "00" })).body.code, 6600)
        assert.strictEqual((yield* form(device_name, "hmacsha1", { signMethod: "md5" })).body.code, 6292)
        assert.strictEqual((yield* form(device_name, "hmacsha1", { productKey: "" })).body.code, 6250)
      }))

    it.effect("signs with either algorithm, in hex of either case or base64 of either alphabet", () =>
      Effect.gen(function*() {
        const device = yield* createTriple
        for (const sign_method of ["hmacsha1", "hmacsha256"]) {
          for (let i = 0; i < 8; i++) {
            const query = yield* signedQuery(device, "PostProperty", { sign_method, random: `random-${i}` })
            const bytes = Buffer.from(query.sign, "hex")
            const base64 = bytes.toString("base64")
            const url = bytes.toString("base64url")
            for (const text of [query.sign, query.sign.toUpperCase(), base64, base64.replace(/=+$/, ""), url]) {
              const { body } = yield* call(
                "POST",
                `/thing-uplink?${new URLSearchParams({ ...query, sign: text }).toString()}`,
                { key: null, body: { params: { n: i } } }
              )
              assert.deepStrictEqual(body, { code: 0, message: "success", data: {} }, text)
            }
          }
        }
      }))

    it.effect("each action does what its message does on MQTT", () =>
      Effect.gen(function*() {
        const device = yield* createTriple
        const { device_id } = device
        const post = (action: string, body: unknown, query: Readonly<Record<string, string>> = {}) =>
          Effect.map(uplink(device, action, { body, query }), ({ body }) => body)
        const events = (id: string) =>
          Effect.map(call("GET", `/things/${device_id}/events?event_id=${id}`), ({ body }) => body.data.results)
        assert.deepStrictEqual(yield* post("PostProperty", { id: "1", params: { temperature: 21.5 } }), {
          code: 0,
          message: "success",
          data: {}
        })
        for (const params of ["{}", null, undefined]) {
          assert.deepStrictEqual((yield* post("PostProperty", { params })).data, {})
        }
        const { properties } = (yield* call("GET", `/things/${device_id}/properties`)).body.data
        assert.deepStrictEqual(properties, { temperature: 21.5 })
        assert.strictEqual((yield* post("PostEvent", { params: { value: { a: 1 } } }, { event_id: "alarm" })).code, 0)
        assert.deepStrictEqual((yield* events("alarm"))[0].value, { a: 1 })
        assert.strictEqual((yield* post("PostHex", { params: { data: "0AFF" } })).code, 0)
        for (const [raw, type] of [["0aff", "text/plain"], [Buffer.from("0aff", "hex"), "application/octet-stream"]]) {
          const { body } = yield* uplink(device, "PostHex", { raw: raw!, headers: { "content-type": type as string } })
          assert.strictEqual(body.code, 0)
        }
        // No bytes are a message, too, as over MQTT.
        assert.strictEqual((yield* post("PostHex", { params: { data: "" } })).code, 0)
        for (const type of ["text/plain", "application/octet-stream"]) {
          const { body } = yield* uplink(device, "PostHex", { raw: "", headers: { "content-type": type } })
          assert.strictEqual(body.code, 0, type)
        }
        assert.deepStrictEqual((yield* events("raw")).map(({ value }: { value: string }) => value), [
          "",
          "",
          "",
          "0aff",
          "0aff",
          "0aff"
        ])
        const modbus = { id: 1, version: "1.0", method: "edge.get", params: { register: 4 } }
        assert.deepStrictEqual(yield* post("PostModbus", modbus), { code: 0, message: "success", data: {} })
        assert.deepStrictEqual((yield* events("modbus"))[0].value, modbus)
        const time = yield* post("PostNTP", { deviceSendTime: "1795231840050" })
        assert.strictEqual(time.data.deviceSendTime, "1795231840050")
        assert.match(time.data.serverRecvTime, /^\d{13}$/)
        const shadow = yield* post("PostShadow", {
          method: "update",
          state: { reported: { color: "red" } },
          version: 9
        })
        assert.deepStrictEqual(shadow.data, { version: 9 })
        assert.deepStrictEqual((yield* post("PostShadow", { method: "get" })).data.state.reported, {
          color: "red",
          temperature: 21.5
        })
        const tags = [{ attrKey: "room", attrValue: "kitchen" }]
        assert.strictEqual((yield* post("PostSysMsg", { method: "thing.deviceinfo.update", params: tags })).code, 0)
        assert.deepStrictEqual((yield* detail(device_id)).tags, { room: "kitchen" })
        const log = [{ utcTime: "2026/11/21 11:31:19", logLevel: "WARN", module: "APP", logContent: "hello" }]
        assert.strictEqual((yield* post("PostSysMsg", { method: "thing.log.post", params: log })).code, 0)
        const diag = { p: { wifi: { rssi: -75 } }, model: "format=simple" }
        assert.strictEqual((yield* post("PostRemoteDiagnosis", { params: diag })).code, 0)
        assert.deepStrictEqual((yield* events("diag"))[0].value, diag)
        const configuration = yield* post("PostSysMsg", { method: "thing.config.get", params: {} })
        assert.deepInclude(configuration, {
          code: 40001,
          data: { device_code: 6713, issues: { "": ["thing config function is not available"] } }
        })
        const tooMany = Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`p${i}`, i]))
        const refused = yield* post("PostProperty", { params: tooMany })
        assert.deepInclude(refused, { code: 40001, data: { device_code: 460, issues: { "": [refused.message] } } })
        assert.include(refused.message, "1000 values")
        assert.deepInclude(yield* post("PostProperty", { params: [] }), {
          code: 40001,
          message: "params: expected an object from property to value",
          data: { device_code: 460, issues: { params: ["expected an object from property to value"] } }
        })
      }))

    it.effect("what waits for a device is answered to it with pull=1, until it answers", () =>
      Effect.gen(function*() {
        const device = yield* createTriple
        const { device_id } = device
        const ask = (path: string, body: object) =>
          Effect.map(
            call("POST", `/things/${device_id}/${path}`, { body }),
            ({ body }) => body.data.message_id as string
          )
        const set = yield* ask("properties", { params: { a: 1, b: 2 } })
        const service = yield* ask("services/reboot", { params: { now: true } })
        const user = yield* ask("user-messages", { topic: "hello", payload: "hi" })
        const pull = (body: object) =>
          Effect.map(
            uplink(device, "PostProperty", { body, query: { pull: "1" } }),
            ({ body }) => (body as unknown as { readonly data_pending: ReadonlyArray<object> }).data_pending
          )
        const expected = [
          { id: set, version: "1.0.0", method: "thing.service.property.set", params: { b: 2 } },
          { id: service, version: "1.0.0", method: "thing.service.reboot", params: { now: true } },
          { id: user, version: "1.0.0", method: "user", params: { topic: "hello", payload: "hi", encoding: "utf8" } }
        ]
        assert.deepStrictEqual(yield* pull({ params: { a: 5 } }), expected)
        assert.deepStrictEqual(yield* pull({ params: {} }), expected)
        for (const [service_id, id] of [["property/set", set], ["reboot", service]]) {
          const { body } = yield* uplink(device, "PostServiceReply", {
            body: { id, code: 200, data: { ok: true } },
            query: { service_id: service_id! }
          })
          assert.strictEqual(body.code, 0)
        }
        const states = yield* Effect.forEach([set, service, user], (id) =>
          Effect.map(
            call("GET", `/things/${device_id}/messages/${id}`),
            ({ body }) => [body.data.type, body.data.state]
          ))
        assert.deepStrictEqual(states, [["property", "succeeded"], ["service", "succeeded"], ["user", "sent"]])
        assert.deepStrictEqual((yield* pull({ params: {} })).length, 1)
      }))

    it.effect("the call of a synchronous service is pulled in the form of its MQTT message", () =>
      Effect.gen(function*() {
        const device = yield* createTriple
        const element = { id: "ask", name: "Ask", callType: "sync", inputData: [], outputData: [] }
        yield* call("POST", `/products/${device.product_key}/thing-model-element`, {
          body: { type: "service", element }
        })
        const { body } = yield* call("POST", `/things/${device.device_id}/services/ask`, {
          body: { params: {}, wait: 0 }
        })
        const pulled = yield* uplink(device, "PostProperty", { body: { params: {} }, query: { pull: "1" } })
        assert.deepStrictEqual(
          (pulled.body as unknown as { readonly data_pending: ReadonlyArray<object> }).data_pending,
          [
            { id: body.data.message_id, version: "1.0.0", method: "thing.service.ask", params: {} }
          ]
        )
      }))

    it.effect("a sub-device does not speak for itself", () =>
      Effect.gen(function*() {
        const fields = { node_type: "gateway-sub", network_type: "", protocol_type: "zigbee" }
        const { product_key } = yield* createProduct(fields)
        const sub = (yield* createDevice(product_key)) as unknown as DeviceTriple & { readonly device_id: string }
        const { body, status } = yield* uplink(sub, "PostProperty", { body: { params: { a: 1 } } })
        assert.deepStrictEqual([status, body.code], [400, 40004])
        assert.strictEqual((yield* detail(sub.device_id)).status, "unactive")
      }))

    it.effect("a device that speaks HTTP is active and online", () =>
      Effect.gen(function*() {
        const device = yield* createTriple
        assert.deepInclude(yield* detail(device.device_id), { status: "unactive", register_at: "" })
        yield* uplink(device, "PostProperty", { body: { params: {} } })
        const seen = yield* detail(device.device_id)
        assert.deepInclude(seen, { status: "online", ip: "127.0.0.1" })
        assert.notStrictEqual(seen.register_at, "")
      }))

    it.effect.each<readonly [string, string, Readonly<Record<string, string>>, unknown, number, string]>([
      ["an unknown action", "PostNothing", {}, {}, 40001, "action"],
      ["a random of 7 characters", "PostProperty", { random: "1234567" }, {}, 40001, "random"],
      ["a random of 17 characters", "PostProperty", { random: "12345678901234567" }, {}, 40001, "random"],
      ["an unknown sign method", "PostProperty", { sign_method: "hmacmd5" }, {}, 40001, "sign_method"],
      ["no event", "PostEvent", {}, { params: {} }, 40001, "event_id"],
      ["an event of two levels", "PostEvent", { event_id: "a/b" }, { params: {} }, 40001, "event_id"],
      ["no service", "PostServiceReply", {}, { id: "1", code: 200 }, 40001, "service_id"],
      ["half a byte", "PostHex", {}, { params: { data: "abc" } }, 40001, "params.data"],
      ["no hex", "PostHex", {}, { params: { data: "xy" } }, 40001, "params.data"],
      ["a sub-device without a name", "PostSubHex", {}, { params: { data: "00" } }, 40001, "params.product_key"],
      [
        "a sub-device with a name that no device has",
        "PostSubHex",
        {},
        { params: { data: "00", product_key: "a", device_name: "b\0" } },
        40001,
        "params.device_name"
      ],
      [
        "a sub-device of a product with a key that none has",
        "PostModbusSub",
        {},
        { params: { data: "00", product_key: "x".repeat(129), device_name: "b" } },
        40001,
        "params.product_key"
      ],
      ["no method of a topology", "PostStarTopo", {}, { params: [] }, 40001, "method"],
      ["a method that is none of its own", "PostSysMsg", {}, { method: "thing.reset" }, 40001, "body.method"],
      ["a body that is no object", "PostProperty", {}, [1], 40001, "body"],
      ["logs that are no array", "PostSysMsg", {}, { method: "thing.log.post", params: {} }, 40001, "params"],
      ["a diagnosis without its members", "PostRemoteDiagnosis", {}, { params: {} }, 40001, "params"],
      ["parameters of the wrong kind", "PostProperty", {}, { params: 5 }, 40001, ""],
      [
        "an older shadow version",
        "PostShadow",
        {},
        { method: "update", state: { reported: { a: 1 } }, version: 0 },
        40904,
        ""
      ]
    ])("an uplink with %s is refused", ([, action, query, body, code, field]) =>
      Effect.gen(function*() {
        const device = yield* createTriple
        if (action === "PostShadow") {
          yield* uplink(device, action, { body: { method: "update", state: { reported: { a: 0 } }, version: 3 } })
        }
        const answer = yield* uplink(device, action, { query, body })
        assert.deepStrictEqual([answer.status, answer.body.code], [Math.floor(code / 100), code])
        if (field !== "") assert.deepStrictEqual(Object.keys(answer.body.data.issues), [field])
        if (code === 40904) assert.deepStrictEqual(answer.body.data, { device_code: 409, version: 3 })
      }))
  })

  // A cloud that has seen no wrong signatures yet.
  layer(testApi(storage), { excludeTestServices: true })(`wrong signatures on ${name}`, (it) => {
    it.effect("an uplink that is not signed by the device has no effect", () =>
      Effect.gen(function*() {
        const [device, other] = [yield* createTriple, yield* createTriple]
        const query = yield* signedQuery(device, "PostProperty")
        const foreign = yield* signedQuery(other, "PostProperty")
        const send = (fields: object) =>
          call("POST", `/thing-uplink?${new URLSearchParams({ ...query, ...fields }).toString()}`, {
            key: null,
            body: { params: { a: 1 } }
          })
        for (const fields of [{ sign: foreign.sign }, { sign: "" }, { random: "abcdefgh" }, { sign: "é" }]) {
          const { body, status } = yield* send(fields)
          assert.deepStrictEqual([status, body.code], [401, 40110])
        }
        assert.strictEqual((yield* send({ device_name: "unknown" })).body.code, 40402)
        const { sign: _, ...unsigned } = query
        const { body } = yield* call("POST", `/thing-uplink?${new URLSearchParams(unsigned).toString()}`, {
          key: null,
          body: {}
        })
        assert.deepStrictEqual(Object.keys(body.data.issues), ["sign"])
        yield* call("PUT", `/things/${device.device_id}/status`, { body: { action: "disable" } })
        assert.deepStrictEqual((yield* send({})).body.code, 40301)
        assert.strictEqual((yield* detail(device.device_id)).status, "unactive")
        const { properties } = (yield* call("GET", `/things/${device.device_id}/properties`)).body.data
        assert.deepStrictEqual(properties, {})
      }))

    it.effect("ten wrong signatures in a minute shut a device out for a minute", () =>
      Effect.gen(function*() {
        const device = yield* createTriple
        const wrong = uplink({ ...device, device_secret: "wrong" }, "PostProperty", { body: { params: {} } })
        for (let i = 0; i < 10; i++) {
          const { body } = yield* wrong
          assert.include([40110, 42900], body.code)
        }
        const answer = yield* uplink(device, "PostProperty", { body: { params: {} } })
        assert.deepStrictEqual([answer.status, answer.body.code], [429, 42900])
        assert.strictEqual(answer.headers["retry-after"], String(answer.body.data.retry_after))
      }))
  })
}
