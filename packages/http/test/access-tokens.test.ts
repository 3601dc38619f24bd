import { connectText, type SignMethod } from "@device-cloud/core"
import { call, createDevice, createProduct, type DeviceTriple, sign, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"

type Triple = DeviceTriple & { readonly device_id: string }

const createTriple = (product: object = {}) =>
  Effect.gen(function*() {
    const { product_key } = yield* createProduct({ validate_type: "none", ...product })
    return (yield* createDevice(product_key)) as unknown as Triple
  })

/** `POST /auth`, signed as public SDKs do. */
const signIn = Effect.fnUntraced(function*(device: DeviceTriple, fields: Readonly<Record<string, unknown>> = {}) {
  const { device_name: deviceName, device_secret, product_key: productKey } = device
  const { signmethod = "hmacsha1", timestamp } = fields as {
    readonly signmethod?: SignMethod
    readonly timestamp?: string
  }
  const clientId = `${productKey}.${deviceName}`
  const text = connectText({ clientId, deviceName, productKey, timestamp })
  const signed = yield* sign(signmethod, device_secret, text)
  const { body } = yield* call("POST", "//auth?_v=sdk-c-4.2.0", {
    key: null,
    body: { version: "default", clientId, deviceName, productKey, signmethod, sign: signed.toUpperCase(), ...fields }
  })
  return body as unknown as {
    readonly code: number
    readonly message: string
    readonly info?: { readonly token: string }
  }
})

const tokenOf = (device: DeviceTriple) => Effect.map(signIn(device), ({ info }) => info!.token)

/** `POST /topic{topic}`. */
const publish = Effect.fnUntraced(
  function*(token: string | undefined, topic: string, payload: string | Buffer | object) {
    const { body, status } = yield* call("POST", `//topic${topic}`, {
      key: null,
      raw: typeof payload === "string" || Buffer.isBuffer(payload) ? payload : JSON.stringify(payload),
      headers: { "content-type": "application/octet-stream", ...token === undefined ? {} : { password: token } }
    })
    const { code, info, message } = body as unknown as {
      readonly code: number
      readonly message: string
      readonly info?: { readonly messageId: number; readonly data?: string }
    }
    const reply = info?.data === undefined ? undefined : JSON.parse(Buffer.from(info.data, "base64").toString())
    return { status, code, message, messageId: info?.messageId, reply }
  }
)

const postTopic = ({ device_name, product_key }: DeviceTriple) =>
  `/sys/${product_key}/${device_name}/thing/event/property/post`

const detail = (deviceId: string) =>
  Effect.map(call("GET", `/things/${deviceId}/detail`), ({ body }) => body.data.device_info)

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`messages with access tokens on ${name}`, (it) => {
    it.effect("a device signs in as public SDKs do, and sends what it would send over MQTT", () =>
      Effect.gen(function*() {
        const device = yield* createTriple()
        const { code, info, message } = yield* signIn(device)
        assert.deepStrictEqual([code, message, info!.token.length], [0, "success", 62])
        const { token } = info!
        const posted = yield* publish(token, postTopic(device), { id: 7, version: "1.0", params: { level: 3 } })
        assert.deepInclude(posted, { status: 200, code: 0, message: "success" })
        assert.isTrue(Number.isSafeInteger(posted.messageId))
        assert.deepStrictEqual(posted.reply, {
          code: 200,
          data: {},
          id: 7,
          message: "success",
          method: "thing.event.property.post",
          version: "1.0"
        })
        const { body } = yield* call("GET", `/things/${device.device_id}/shadow`)
        assert.deepInclude(body.data.thing_shadow.state.reported, { level: 3 })
        assert.deepInclude(yield* detail(device.device_id), { status: "online" })
        const own = `${device.product_key}/${device.device_name}`
        const others = [
          [`/${own}/user/log/a`, "grüße"],
          [`/${own}/user/raw`, Buffer.from([255, 0])],
          [`/shadow/update/${own}`, { method: "get" }],
          [`/ext/ntp/${own}/request`, { deviceSendTime: "1" }],
          [`/ota/device/inform/${own}`, { id: "1", params: { version: "1.2.3" } }],
          [`/sys/${own}/thing/model/up_raw`, Buffer.from([1, 2])],
          [`/sys/${own}/_thing/diag/post`, { params: { p: { wifi: {} }, model: "a" } }]
        ] as const
        for (const [topic, payload] of others) {
          assert.deepInclude(yield* publish(token, topic, payload), { code: 0 }, topic)
        }
        assert.strictEqual((yield* detail(device.device_id)).firmware_version, "1.2.3")
      }))

    it.effect("what is not stored is not acknowledged", () =>
      Effect.gen(function*() {
        const device = yield* createTriple()
        const token = yield* tokenOf(device)
        const refused = yield* publish(token, postTopic(device), { id: "1", params: 5 })
        assert.strictEqual(refused.code, 30_001)
        assert.strictEqual(refused.reply.code, 460)
        const own = `/sys/${device.product_key}/${device.device_name}`
        for (
          const [topic, payload] of [
            [postTopic(device), "{"],
            [postTopic(device), "[]"],
            [`${own}/thing/no/such`, {}],
            [`${own}/user`, {}],
            ...["%2B", "a/%23", "a%00"].map((topic) => [`${own.slice(4)}/user/${topic}`, {}] as const),
            [`${own}/thing/file/download`, {}],
            ["/", {}],
            [postTopic(device), "x".repeat(256 * 1024 + 1)]
          ] as const
        ) {
          assert.strictEqual((yield* publish(token, topic, payload)).code, 10_001, topic)
        }
      }))

    it.effect("a wrong signature, or none that can be read, gets no token", () =>
      Effect.gen(function*() {
        const device = yield* createTriple()
        assert.strictEqual((yield* signIn(device, { signmethod: "hmacmd5", timestamp: "1501668289957" })).code, 0)
        assert.strictEqual((yield* signIn(device, { signmethod: "hmacsha256" })).code, 0)
        for (
          const [fields, code] of [
            [{ sign: "0".repeat(40) }, 20_000],
            [{ deviceName: "missing" }, 20_000],
            [{ productKey: 5 }, 10_001],
            [{ sign: undefined }, 10_001],
            [{ timestamp: "1501668289958", sign: "x" }, 20_000]
          ] as const
        ) {
          assert.strictEqual((yield* signIn(device, fields)).code, code, JSON.stringify(fields))
        }
        for (
          const raw of ["{", "[]", `{"productKey":"a","deviceName":"b","clientId":"c","sign":"d","signmethod":"rot13"}`]
        ) {
          assert.strictEqual((yield* call("POST", "//auth", { key: null, raw })).body.code, 10_001, raw)
        }
        assert.strictEqual((yield* call("GET", "//auth", { key: null })).body.code, 40_500)
        for (let i = 0; i < 10; i++) yield* signIn(device, { sign: "x" })
        assert.strictEqual((yield* signIn(device)).code, 40_000)
      }))

    it.effect("a token counts for its device alone, until its time is over or its secret is replaced", () =>
      Effect.gen(function*() {
        const [device, other] = [yield* createTriple(), yield* createTriple()]
        const token = yield* tokenOf(device)
        const send = (sent: string | undefined, to: DeviceTriple = device) =>
          Effect.map(publish(sent, postTopic(to), { params: {} }), ({ code }) => code)
        assert.strictEqual(yield* send(token), 0)
        assert.strictEqual(yield* send(token.toUpperCase()), 0)
        assert.strictEqual(yield* send(undefined), 20_002)
        assert.strictEqual(yield* send(token, other), 20_003)
        const later = (parseInt(token.slice(0, 8), 16) + 1).toString(16)
        for (const forged of ["x", later + token.slice(8), `${token.slice(0, -1)}g`, `${token}0`]) {
          assert.strictEqual(yield* send(forged), 20_003, forged)
        }
        yield* call("POST", `/things/${device.device_id}/secret`, { body: { overlap: 0 } })
        assert.strictEqual(yield* send(token), 20_003)
        // A secret that is replaced gives no token that outlives it.
        const rotated = yield* createTriple()
        const rotate = call("POST", `/things/${rotated.device_id}/secret`, { body: { overlap: 3600 } })
        yield* rotate
        const overlapping = yield* tokenOf(rotated)
        assert.strictEqual(yield* send(overlapping, rotated), 0)
        yield* rotate
        assert.strictEqual(yield* send(overlapping, rotated), 20_003)
        const disabled = yield* tokenOf(other)
        yield* call("PUT", `/things/${other.device_id}/status`, { body: { action: "disable" } })
        assert.strictEqual(yield* send(disabled, other), 20_003)
        assert.strictEqual((yield* signIn(other)).code, 20_000)
      }))

    it.effect("a topic names a device as the cloud does: no other text stands for it", () =>
      Effect.gen(function*() {
        const device = yield* createTriple()
        const { device_name, device_secret, product_key } = device
        const send = Effect.fnUntraced(function*(productKey: string, deviceName: string) {
          const expires = "7fffffff"
          const text = `accessTokendeviceName${deviceName}expires${expires}productKey${productKey}`
          const token = expires + (yield* sign("hmacsha256", device_secret, text)).slice(0, 54)
          const named = [productKey, deviceName].map(encodeURIComponent).join("/")
          return (yield* publish(token, `/sys/${named}/thing/event/property/post`, { params: {} })).code
        })
        assert.strictEqual(yield* send(product_key, device_name), 0)
        for (
          const [productKey, deviceName] of [
            [product_key, `${device_name}\0`],
            [product_key, `${device_name}\0x`],
            [`${product_key}\0${device_name}`, "x"],
            [product_key, "x".repeat(129)],
            ["x".repeat(129), device_name]
          ] as const
        ) assert.strictEqual(yield* send(productKey, deviceName), 10_001, deviceName)
      }))

    it.effect("a product that requires fresh signatures gives no token", () =>
      Effect.gen(function*() {
        const device = yield* createTriple({ uplink_signature: "timestamped" })
        assert.strictEqual((yield* signIn(device)).code, 20_000)
      }))

    it.effect("a sub-device gets no token: it speaks through its gateway", () =>
      Effect.gen(function*() {
        const device = yield* createTriple({ node_type: "gateway-sub", network_type: "", protocol_type: "zigbee" })
        assert.strictEqual((yield* signIn(device)).code, 20_000)
      }))
  })
}
