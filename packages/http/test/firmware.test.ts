import { defaultProjectId, Objects } from "@device-cloud/core"
import { call, createProduct, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { createSign, generateKeyPairSync, type KeyObject } from "node:crypto"
import { storages } from "../../../vitest.storages.ts"
import { createFirmware, createTask, devicesOf, firmwareBody, newFirmware, say } from "./UpgradeRequests.ts"

/** An object with what a firmware says of it. */
const uploadFile = Effect.gen(function*() {
  const object = yield* (yield* Objects).upload(defaultProjectId, "fw.bin", Stream.make(new Uint8Array(1234)))
  const oss_path = `https://cloud.example.com/objects/${object.objectId}/${object.fileName}`
  return { object, oss_path, hash: object.md5 }
})

const keys = {
  ec: generateKeyPairSync("ec", { namedCurve: "P-256" }),
  rsa: generateKeyPairSync("rsa", { modulusLength: 2048 })
}

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`firmware on ${name}`, (it) => {
    it.effect("firmware is created, read, listed and deleted", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { body } = yield* createFirmware(product_key)
        const { created_at, id, updated_at, ...rest } = body.data
        assert.deepStrictEqual(rest, {
          ...firmwareBody,
          sha256: "",
          signature: "",
          signing_key_id: "",
          module: "default",
          status: 0,
          ongoing: false,
          product_key,
          product_name: "Thermometer"
        })
        assert.strictEqual(created_at, updated_at)
        assert.deepStrictEqual((yield* call("GET", `/ota/firmwares/${id}`)).body.data, body.data)
        const taken = yield* createFirmware(product_key)
        assert.deepStrictEqual([taken.status, taken.body.code], [409, 40901])
        const other = yield* newFirmware(product_key, { module: "MCU", version: "1.1.0-rc.1", name: "Modem" })
        const list = (query: string) =>
          Effect.map(call("GET", `/ota/firmwares?product_key=${product_key}${query}`), ({ body }) =>
            body.data.results.map((firmware: { readonly id: number }) => firmware.id))
        assert.deepStrictEqual(yield* list(""), [other, id])
        assert.deepStrictEqual(yield* list("&name=stat"), [id])
        assert.deepStrictEqual((yield* call("DELETE", `/ota/firmwares/${id}`)).body, {
          code: 0,
          message: "success",
          data: {}
        })
        assert.strictEqual((yield* call("DELETE", `/ota/firmwares/${id}`)).body.code, 40404)
        assert.strictEqual((yield* createFirmware("unknown")).body.code, 40401)
      }))

    it.effect.each<readonly [object, string]>([
      [{ name: "" }, "name"],
      [{ version: "1.0" }, "version"],
      [{ version: "1.0.0+5" }, "version"],
      [{ version: `1.0.0-${"x".repeat(30)}` }, "version"],
      [{ oss_path: "ftp://example.com/x" }, "oss_path"],
      [{ oss_path: "file:///etc/passwd" }, "oss_path"],
      [{ algorithms: 2 }, "algorithms"],
      [{ hash: "xyz" }, "hash"],
      [{ sha256: "xyz" }, "sha256"],
      [{ module: "a b" }, "module"],
      [{ size: -1 }, "size"]
    ])("refuses a firmware with %j", ([fields, field]) =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { body } = yield* createFirmware(product_key, fields)
        assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40001, [field]])
      }))

    it.effect("the size of a firmware whose file is stored here is known", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { hash, oss_path: address } = yield* uploadFile
        const sizeOf = (oss_path: string, version: string, size?: number) =>
          Effect.map(createFirmware(product_key, { oss_path, version, size, hash }), ({ body }) => body.data.size)
        assert.strictEqual(yield* sizeOf(address, "2.0.0"), 1234)
        assert.strictEqual(yield* sizeOf(address, "2.0.1", 99), 99)
        assert.strictEqual(yield* sizeOf(`${address}x`, "2.0.2"), 0)
      }))

    it.effect("a hash that is not that of the stored file is refused; of a file elsewhere, nobody knows", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { hash, oss_path } = yield* uploadFile
        const { body } = yield* createFirmware(product_key, { oss_path })
        assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40001, ["hash"]])
        const wrong = yield* createFirmware(product_key, { oss_path, hash, sha256: "0".repeat(64) })
        assert.deepStrictEqual([wrong.body.code, Object.keys(wrong.body.data.issues)], [40001, ["sha256"]])
        assert.strictEqual((yield* call("GET", `/ota/firmwares?product_key=${product_key}`)).body.data.total, 0)
        assert.strictEqual((yield* createFirmware(product_key, { oss_path: `${oss_path}x` })).body.code, 0)
      }))

    it.effect.each(["ec", "rsa"] as const)(
      "while a product has a key (%s), its firmware has to be signed",
      (kind) =>
        Effect.gen(function*() {
          const { product_key } = yield* createProduct()
          const path = `/products/${product_key}/ota/signing-key`
          const { privateKey, publicKey } = keys[kind]
          const { hash, oss_path } = yield* uploadFile
          const sign = (content: Uint8Array) => createSign("sha256").update(content).sign(privateKey).toString("base64")
          const signature = sign(new Uint8Array(1234))
          const create = (version: string, fields: object) =>
            Effect.map(
              createFirmware(product_key, { hash, oss_path, version, ...fields }),
              ({ body }) => body.code === 0 ? body.data : Object.keys(body.data.issues)
            )
          assert.deepStrictEqual((yield* call("GET", path)).body.data, {})
          assert.deepStrictEqual(yield* create("1.0.0", { signature }), ["signature"])

          const pem = publicKey.export({ type: "spki", format: "pem" }).toString()
          const { body } = yield* call("PUT", path, { body: { public_key: `\n${pem}` } })
          const key = body.data
          assert.deepInclude(key, { public_key: pem, algorithm: kind === "ec" ? "ECDSA-SHA256" : "RSA-SHA256" })
          assert.match(key.key_id, /^[0-9a-f]{64}$/)
          assert.deepStrictEqual((yield* call("GET", path)).body.data, key)
          const cases: ReadonlyArray<readonly [object, string]> = [
            [{}, "signature"],
            [{ signature: "" }, "signature"],
            [{ signature: "no base64!" }, "signature"],
            [{ signature: sign(new Uint8Array(1235)) }, "signature"],
            [{ signature: Buffer.alloc(64).toString("base64") }, "signature"],
            [{ signature, oss_path: "https://cloud.example.com/firmware.bin" }, "oss_path"]
          ]
          for (const [fields, field] of cases) assert.deepStrictEqual(yield* create("1.0.0", fields), [field])
          const firmware = yield* create("1.0.0", { signature })
          assert.deepInclude(firmware, { signature, signing_key_id: key.key_id })
          const [device] = yield* devicesOf(product_key, 1)
          yield* createTask(firmware.id, { scope_mode: 0 })
          assert.deepStrictEqual((yield* say(device!, "firmware.get", {})).data.extData, {
            signature,
            signatureKeyId: key.key_id,
            signatureMethod: key.algorithm
          })
          assert.deepStrictEqual((yield* call("DELETE", path)).body.data, {})
          assert.deepStrictEqual((yield* call("DELETE", path)).body.data, {})
          assert.deepInclude(yield* create("1.0.1", {}), { signature: "", signing_key_id: "" })
          assert.deepInclude((yield* call("GET", `/ota/firmwares/${firmware.id}`)).body.data, { signature })
        })
    )

    it.effect("a signing key is a public one that is strong enough, of a product of the project", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const set = (public_key: unknown, product = product_key) =>
          Effect.map(call("PUT", `/products/${product}/ota/signing-key`, { body: { public_key } }), ({ body }) => body)
        const publicPem = (key: KeyObject) => key.export({ type: "spki", format: "pem" }).toString()
        const ec = generateKeyPairSync("ec", { namedCurve: "P-256" })
        const refused = [
          "",
          "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
          ec.privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
          `${publicPem(ec.publicKey)}${ec.privateKey.export({ type: "pkcs8", format: "pem" }).toString()}`,
          publicPem(generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey),
          publicPem(generateKeyPairSync("ec", { namedCurve: "secp256k1" }).publicKey),
          publicPem(generateKeyPairSync("ed25519").publicKey),
          7
        ]
        for (const key of refused) {
          const body = yield* set(key)
          assert.deepStrictEqual([body.code, Object.keys(body.data.issues)], [40001, ["public_key"]], String(key))
        }
        assert.strictEqual((yield* set(publicPem(ec.publicKey), "unknown")).code, 40401)
        assert.strictEqual((yield* call("GET", "/products/unknown/ota/signing-key")).body.code, 40401)
        assert.strictEqual((yield* call("DELETE", "/products/unknown/ota/signing-key")).body.code, 40401)
        assert.deepStrictEqual((yield* call("GET", `/products/${product_key}/ota/signing-key`)).body.data, {})
      }))

    it.effect("the file of a task that has not ended cannot be deleted", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        yield* devicesOf(product_key, 1)
        const { object, ...file } = yield* uploadFile
        const firmwareId = yield* newFirmware(product_key, { ...file, version: "3.0.0" })
        const { task_id } = (yield* createTask(firmwareId, { scope_mode: 0 })).body.data
        const objects = yield* Objects
        const refused = yield* Effect.flip(objects.remove(defaultProjectId, object.objectId))
        assert.deepInclude(refused, {
          _tag: "ObjectInUse",
          reason: `firmware ${firmwareId} (version 3.0.0) has a task that has not ended, or whose devices still finish`
        })
        assert.strictEqual((yield* call("DELETE", `/ota/tasks/${task_id}`)).body.code, 0)
        yield* objects.remove(defaultProjectId, object.objectId)
      }))
  })
}
