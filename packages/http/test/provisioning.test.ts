import { call, createDevice, createProduct, type DeviceTriple, testApi, uplink } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { createCipheriv, createHash } from "node:crypto"
import { storages } from "../../../vitest.storages.ts"

const newDevice = Effect.flatMap(
  createProduct(),
  ({ product_key }) =>
    Effect.map(
      createDevice(product_key),
      (device) => device as unknown as DeviceTriple & { readonly device_id: string }
    )
)

const random = "000102030405060708090a0b0c0d0e0f"

/** What a device answers to the random. */
const answerOf = ({ device_name, device_secret, product_key }: DeviceTriple) => {
  const bytes = Buffer.from(random, "hex")
  const names = Buffer.from(`,${product_key},${device_name},${device_secret}`)
  const key = createHash("sha256").update(Buffer.concat([bytes, names])).digest().subarray(0, 16)
  const cipher = createCipheriv("aes-128-cbc", key, "123aqwed#*$!(4ju").update(bytes)
  return { ble_key: key.toString("hex"), cipher: cipher.toString("hex") }
}

const otherProject = Effect.gen(function*() {
  const { body } = yield* call("POST", "/projects", { body: { name: "Other" } })
  const created = yield* call("POST", "/access-keys", {
    body: { name: "test", role: "admin", project_id: body.data.id }
  })
  return created.body.data.key as string
})

const done = { code: 0, message: "success" }

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`provisioning on ${name}`, (it) => {
    it.effect("tells the key of a device that answers rightly over Bluetooth", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const { ble_key, cipher } = answerOf(device)
        const check = (fields: object, key?: string) =>
          call("POST", `/auth/ble/products/${device.product_key}/identity`, {
            body: { product_key: device.product_key, device_name: device.device_name, random, cipher, ...fields },
            ...key === undefined ? {} : { key }
          })
        assert.deepStrictEqual((yield* check({})).body, { ...done, data: { ble_key } })
        const upper = yield* check({ random: random.toUpperCase(), cipher: cipher.toUpperCase() })
        assert.deepStrictEqual(upper.body.data, { ble_key })
        for (const wrong of ["0".repeat(32), answerOf(yield* newDevice).cipher, ble_key, random]) {
          const { body, status } = yield* check({ cipher: wrong })
          assert.deepStrictEqual([status, body.code, body.data], [401, 40110, undefined])
        }
        assert.strictEqual((yield* check({ random: "f".repeat(32) })).body.code, 40110)
        for (
          const [field, value] of [["random", "00"], ["cipher", "g".repeat(32)], ["device_name", undefined]] as const
        ) {
          const { body } = yield* check({ [field]: value })
          assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40001, [field]])
        }
        assert.strictEqual((yield* check({ device_name: "unknown" })).body.code, 40402)
        assert.strictEqual((yield* check({}, yield* otherProject)).body.code, 40402)
        yield* call("PUT", `/things/${device.device_id}/status`, { body: { action: "disable" } })
        assert.strictEqual((yield* check({})).body.code, 40301)
      }))

    it.effect("tells the random that a device has reported, until it is unbound", () =>
      Effect.gen(function*() {
        const device = yield* newDevice
        const path = `/products/${device.product_key}/device-names/${device.device_name}/bind`
        const report = (random: unknown) =>
          Effect.map(
            uplink(device, "PostSysMsg", { body: { id: "1", method: "thing.bind.post", params: { random } } }),
            ({ body }) => body
          )
        const lookUp = Effect.map(call("GET", path), ({ body, status }) => [status, body.code, body.data])
        assert.deepStrictEqual(yield* lookUp, [409, 40910, undefined])
        for (const wrong of ["1234567", "x".repeat(33), "", 12_345_678, null, ["12345678"], "1234567\0"]) {
          const data = { device_code: 460, issues: { random: ["expected 8 to 32 characters"] } }
          assert.deepInclude(yield* report(wrong), { code: 40001, data })
        }
        assert.deepStrictEqual(yield* lookUp, [409, 40910, undefined])
        for (const random of ["12345678", "x".repeat(32)]) {
          assert.deepStrictEqual(yield* report(random), { ...done, data: {} })
          assert.deepStrictEqual(yield* lookUp, [200, 0, { random }])
        }
        const bare = { method: "thing.bind.post", random: "abcdefgh" }
        assert.deepStrictEqual((yield* uplink(device, "PostSysMsg", { body: bare })).body, { ...done, data: {} })
        assert.deepStrictEqual(yield* lookUp, [200, 0, { random: "abcdefgh" }])
        yield* call("PUT", `/things/${device.device_id}/status`, { body: { action: "bind" } })
        assert.deepStrictEqual((yield* lookUp)[0], 200)
        yield* call("PUT", `/things/${device.device_id}/status`, { body: { action: "unbind" } })
        assert.deepStrictEqual(yield* lookUp, [409, 40910, undefined])

        // A random that the cloud has made is the only one that counts.
        yield* report("12345678")
        const made = yield* call("POST", path)
        const { random } = made.body.data
        assert.match(random, /^[0-9a-f]{32}$/)
        assert.deepStrictEqual(yield* lookUp, [409, 40910, undefined])
        const refused = yield* report("12345678")
        assert.deepStrictEqual([refused.code, Object.keys(refused.data.issues)], [40001, ["random"]])
        assert.deepStrictEqual(yield* lookUp, [409, 40910, undefined])
        assert.strictEqual((yield* report(random)).code, 0)
        assert.deepStrictEqual(yield* lookUp, [200, 0, { random }])

        const key = yield* otherProject
        for (const method of ["GET", "POST"]) {
          assert.strictEqual((yield* call(method, path, { key })).body.code, 40402)
          assert.strictEqual((yield* call(method, path.replace(device.device_name, "unknown"))).body.code, 40402)
        }
        assert.deepStrictEqual(yield* lookUp, [200, 0, { random }])
      }))
  })
}
