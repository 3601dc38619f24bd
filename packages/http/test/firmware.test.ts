import { defaultProjectId, Objects } from "@device-cloud/core"
import { call, createProduct, testApi } from "@device-cloud/testing/http"
import { assert, layer } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { storages } from "../../../vitest.storages.ts"
import { createFirmware, firmwareBody, newFirmware } from "./UpgradeRequests.ts"

for (const [name, storage] of storages) {
  layer(testApi(storage), { excludeTestServices: true })(`firmware on ${name}`, (it) => {
    it.effect("firmware is created, read, listed and deleted", () =>
      Effect.gen(function*() {
        const { product_key } = yield* createProduct()
        const { body } = yield* createFirmware(product_key)
        const { created_at, id, updated_at, ...rest } = body.data
        assert.deepStrictEqual(rest, {
          ...firmwareBody,
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
        const { fileName, objectId } = yield* (yield* Objects).upload(
          defaultProjectId,
          "fw.bin",
          Stream.make(new Uint8Array(1234))
        )
        const sizeOf = (oss_path: string, version: string, size?: number) =>
          Effect.map(createFirmware(product_key, { oss_path, version, size }), ({ body }) => body.data.size)
        const address = `https://cloud.example.com/objects/${objectId}/${fileName}`
        assert.strictEqual(yield* sizeOf(address, "2.0.0"), 1234)
        assert.strictEqual(yield* sizeOf(address, "2.0.1", 99), 99)
        assert.strictEqual(yield* sizeOf(`${address}x`, "2.0.2"), 0)
      }))
  })
}
