import { AccessKeys, defaultProjectId, Devices, Products } from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { HttpServer } from "effect/http"
import * as Server from "../src/Server.ts"

interface CallOptions {
  readonly key?: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

interface Body {
  readonly code: number
  readonly message: string
  readonly data?: unknown
  /** Of the description. */
  readonly paths?: object
}

const call = (method: string, path: string, { body, headers, key }: CallOptions = {}) =>
  Effect.flatMap(HttpServer.HttpServer, ({ address }) =>
    Effect.promise(async () => {
      const response = await fetch(`${HttpServer.formatAddress(address)}${path}`, {
        method,
        headers: {
          "content-type": "application/json",
          ...key === undefined ? {} : { authorization: `Bearer ${key}` },
          ...headers
        },
        ...body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }
      })
      return { status: response.status, headers: response.headers, body: await response.json() as Body }
    }))

const newKey = Effect.fnUntraced(function*(role: "admin" | "viewer") {
  const { key } = yield* (yield* AccessKeys).create(defaultProjectId, { name: role, role })
  return Redacted.value(key)
})

const newDevice = Effect.gen(function*() {
  const { productKey } = yield* (yield* Products).create(defaultProjectId, {
    name: "Boiler",
    nodeType: "direct",
    networkType: "wifi",
    validateType: "weak",
    dataFormat: "json",
    authType: "secret"
  })
  return yield* (yield* Devices).create(defaultProjectId, productKey, {})
})

const inspection = { inspector: "Ada", passed: true }

layer(Server.layer(0), { excludeTestServices: true })("a route beside the management API", (it) => {
  it.effect("responds to an access key, in the envelope and with a request id", () =>
    Effect.gen(function*() {
      const key = yield* newKey("admin")
      const { deviceId } = yield* newDevice
      const path = `/openapi/v1/acme/things/${deviceId}/inspections`
      const recorded = yield* call("POST", path, { key, body: inspection, headers: { "x-request-id": "mine" } })
      assert.deepStrictEqual([recorded.status, recorded.body], [200, { code: 0, message: "success" }])
      assert.strictEqual(recorded.headers.get("x-request-id"), "mine")
      const latest = yield* call("GET", `${path}/latest`, { key: yield* newKey("viewer") })
      assert.deepStrictEqual(latest.body, { code: 0, message: "success", data: inspection })
    }))

  it.effect("fails with its own failures and with those of the cloud", () =>
    Effect.gen(function*() {
      const key = yield* newKey("admin")
      const { deviceId } = yield* newDevice
      const early = yield* call("GET", `/openapi/v1/acme/things/${deviceId}/inspections/latest`, { key })
      assert.deepStrictEqual([early.status, early.body.code], [404, 40450])
      const missing = yield* call("GET", "/openapi/v1/acme/things/missing/inspections/latest", { key })
      assert.deepStrictEqual([missing.status, missing.body], [
        404,
        { code: 40402, message: "There is no device missing" }
      ])
    }))

  it.effect("refuses requests without an access key, and those whose role is too low", () =>
    Effect.gen(function*() {
      const { deviceId } = yield* newDevice
      const path = `/openapi/v1/acme/things/${deviceId}/inspections`
      const nobody = yield* call("POST", path, { body: inspection })
      assert.deepStrictEqual([nobody.status, nobody.body.code], [401, 40100])
      const viewer = yield* call("POST", path, { key: yield* newKey("viewer"), body: inspection })
      assert.deepStrictEqual([viewer.status, viewer.body], [
        403,
        { code: 40300, message: "This needs the role admin; the access key has the role viewer" }
      ])
    }))

  it.effect("says what is wrong with a body", () =>
    Effect.gen(function*() {
      const key = yield* newKey("admin")
      const { deviceId } = yield* newDevice
      const path = `/openapi/v1/acme/things/${deviceId}/inspections`
      const unfit = yield* call("POST", path, { key, body: { inspector: "Ada", passed: "yes" } })
      assert.deepStrictEqual([unfit.status, unfit.body.code], [400, 40001])
      assert.hasAllKeys((unfit.body.data as { readonly issues: object }).issues, ["passed"])
      const broken = yield* call("POST", path, { key, body: "{" })
      assert.deepStrictEqual([broken.status, broken.body.code], [400, 40000])
    }))

  it.effect("repeats its response to a POST that comes again with the same Idempotency-Key", () =>
    Effect.gen(function*() {
      const key = yield* newKey("admin")
      const { deviceId } = yield* newDevice
      const path = `/openapi/v1/acme/things/${deviceId}/inspections`
      const headers = { "idempotency-key": "first" }
      const first = yield* call("POST", path, { key, body: inspection, headers })
      const again = yield* call("POST", path, { key, body: inspection, headers })
      assert.deepStrictEqual(again.body, first.body)
      const other = yield* call("POST", path, { key, body: { ...inspection, passed: false }, headers })
      assert.deepStrictEqual([other.status, other.body.code], [409, 40900])
    }))

  it.effect("is known where paths and methods are looked up, and in the description", () =>
    Effect.gen(function*() {
      const unknown = yield* call("GET", "/openapi/v1/acme/nothing")
      assert.deepStrictEqual([unknown.status, unknown.body.code], [404, 40400])
      const method = yield* call("DELETE", "/openapi/v1/acme/things/1/inspections")
      assert.deepStrictEqual([method.status, method.body.code], [405, 40500])
      assert.strictEqual(method.headers.get("allow"), "POST")
      const { body } = yield* call("GET", "/openapi.json")
      assert.containsAllKeys(body.paths ?? {}, [
        "/openapi/v1/acme/things/{device_id}/inspections",
        "/openapi/v1/products"
      ])
    }))

  it.effect("is a group that the scopes of a key may name", () =>
    Effect.gen(function*() {
      const key = yield* newKey("admin")
      const scoped = (action: string) =>
        Effect.map(
          call("POST", "/openapi/v1/access-keys", {
            key,
            body: { name: action, role: "viewer", scopes: { actions: [action] } }
          }),
          ({ body }) => body.code
        )
      assert.deepStrictEqual(yield* Effect.forEach(["inspections:read", "inspection:read"], scoped), [0, 40001])
    }))
})
