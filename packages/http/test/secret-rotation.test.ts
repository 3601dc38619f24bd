import { call, createDevice, createProduct, type DeviceTriple, sign, testApi, uplink } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { createCipheriv, createHash } from "node:crypto"
import { storages } from "../../../vitest.storages.ts"

type Device = DeviceTriple & { readonly device_id: string }

const newDevice = Effect.flatMap(
  createProduct({ dynamic_register: true }),
  ({ product_key }) => Effect.map(createDevice(product_key), (device) => device as unknown as Device)
)

const random = "000102030405060708090a0b0c0d0e0f"

/** What a device answers over Bluetooth. */
const bleAnswer = ({ device_name, device_secret, product_key }: DeviceTriple) => {
  const bytes = Buffer.from(random, "hex")
  const names = Buffer.from(`,${product_key},${device_name},${device_secret}`)
  const key = createHash("sha256").update(Buffer.concat([bytes, names])).digest().subarray(0, 16)
  const cipher = createCipheriv("aes-128-cbc", key, "123aqwed#*$!(4ju").update(bytes)
  return { ble_key: key.toString("hex"), cipher: cipher.toString("hex") }
}

/** The codes of all calls in which the secret of a device takes part. */
const waysIn = Effect.fnUntraced(function*(device: Device) {
  const { device_name, device_secret, product_key } = device
  const { ble_key, cipher } = bleAnswer(device)
  const ble = yield* call("POST", `/auth/ble/products/${product_key}/identity`, {
    body: { device_name, random, cipher }
  })
  if (ble.body.code === 0) assert.deepStrictEqual(ble.body.data, { ble_key })
  const { body: { data: { network_key } } } = yield* call("POST", "/mesh/networks")
  const mesh = yield* call("POST", `/mesh/networks/${network_key}/nodes`, {
    body: {
      product_key,
      device_name,
      sign_method: "hmacsha1",
      sign: yield* sign("hmacsha1", device_secret, `deviceName${device_name}productKey${product_key}`),
      node_type: 1
    }
  })
  const said = yield* uplink(device, "PostNTP", { body: { deviceSendTime: 1 } })
  return [ble.body.code, mesh.body.code, said.body.code]
})

const register = Effect.fnUntraced(function*(product_key: string, secret: string) {
  const device_name = "thermometer1"
  const text = `deviceName${device_name}productKey${product_key}random12345`
  const { body } = yield* call("POST", "/auth/generator/device", {
    key: null,
    body: {
      device_name,
      product_key,
      random: "12345",
      sign_method: "hmacsha1",
      sign: yield* sign("hmacsha1", secret, text)
    }
  })
  return body.code as number
})

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`replaced secrets on ${name}`, (it) => {
    it.effect("replaces the secret of a device, with a time in which both count", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const path = `/things/${device.device_id}/secret`
        const { body } = yield* call("POST", path)
        const { device_secret, previous_valid_until } = body.data
        assert.match(device_secret, /^[a-z0-9]{32}$/)
        assert.notStrictEqual(device_secret, device.device_secret)
        const hour = Date.parse(previous_valid_until) - Date.now()
        assert.isTrue(hour > 3_500_000 && hour <= 3_600_000)
        const second = { ...device, device_secret }
        assert.deepStrictEqual([yield* waysIn(device), yield* waysIn(second)], [[0, 0, 0], [0, 0, 0]])
        const shown = (yield* call("GET", `/things/${device.device_id}/detail`)).body.data.device_info
        assert.strictEqual(shown.device_secret, device_secret)
        assert.notInclude(JSON.stringify(shown), device.device_secret)
        const at = yield* call("POST", path, { body: { overlap: 0 } })
        assert.strictEqual(at.body.data.previous_valid_until, "")
        const third = { ...device, device_secret: at.body.data.device_secret }
        assert.deepStrictEqual(yield* waysIn(device), [40110, 40110, 40110])
        assert.deepStrictEqual(yield* waysIn(second), [40110, 40110, 40110])
        assert.deepStrictEqual(yield* waysIn(third), [0, 0, 0])
      }))

    it.effect("replaces the secret of a product, with a time in which both count", () =>
      Effect.gen(function*() {
        const { product_key, product_secret } = yield* createProduct({ dynamic_register: true })
        const rotate = (body?: object) => call("POST", `/products/${product_key}/secret`, { body })
        const { body: { data: first } } = yield* rotate({ overlap: 604_800 })
        assert.deepStrictEqual(Object.keys(first).toSorted(), ["previous_valid_until", "product_secret"])
        assert.deepStrictEqual(
          [yield* register(product_key, product_secret!), yield* register(product_key, first.product_secret)],
          [0, 0]
        )
        const { body: { data: second } } = yield* rotate({ overlap: 0 })
        assert.deepStrictEqual(
          [yield* register(product_key, first.product_secret), yield* register(product_key, second.product_secret)],
          [40110, 0]
        )
        const shown = (yield* call("GET", `/products/${product_key}`)).body.data.product_info
        assert.strictEqual(shown.product_secret, second.product_secret)
      }))

    it.effect("refuses an overlap that is no whole number of seconds up to a week, and names what is missing", () =>
      Effect.gen(function*() {
        const { device_id, product_key } = yield* newDevice
        for (const path of [`/things/${device_id}/secret`, `/products/${product_key}/secret`]) {
          for (const overlap of [-1, 604_801, 1.5, "60", 1e300]) {
            const { body } = yield* call("POST", path, { body: { overlap } })
            assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40001, ["overlap"]], String(overlap))
          }
        }
        assert.strictEqual((yield* call("POST", "/things/missing/secret")).body.code, 40402)
        assert.strictEqual((yield* call("POST", "/products/missing/secret")).body.code, 40401)
      }))
  })
}
