import { DeviceName, Mac, ProductKey, type SignMethod } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import { eventually } from "@device-cloud/testing"
import { type CallOptions, callTo, ownerKey, productBody, signedQuery } from "@device-cloud/testing/http"
import { MqttDevice } from "@device-cloud/testing/mqtt"
import { NodeServices } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { rm, symlink } from "node:fs/promises"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { inject } from "vitest"
import { newDatabase } from "../../../vitest.storages.ts"
import { start, temporaryDirectory } from "./TestServer.ts"

/** Receives what an OpenTelemetry collector does, as text. */
const collector = Effect.gen(function*() {
  const received: Array<string> = []
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk) => chunks.push(chunk))
    request.on("end", () => {
      received.push(Buffer.concat(chunks).toString())
      response.setHeader("content-type", "application/json").end("{}")
    })
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
    () => Effect.sync(() => void server.close())
  )
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, text: () => received.join("\n") }
})

const forged = "x\n[00:00:00.000] ERROR forged\r\u001b[31mforged"

it.live("no secret gets into logs, traces or metrics, and nobody forges a line", () =>
  Effect.gen(function*() {
    const dataDir = yield* temporaryDirectory
    const postgres = Redacted.make(inject("postgresUrl"))
    const databaseUrl = yield* newDatabase
    const collected = yield* collector
    const server = yield* start({
      DATABASE_URL: Redacted.value(databaseUrl),
      DATA_DIR: dataDir,
      OBJECTS: "files",
      LOG_LEVEL: "All",
      OTLP_URL: collected.url,
      WEBHOOK_ALLOW_PRIVATE: "true"
    })
    const secrets = new Map<string, string>()
    /** Remembers a secret. */
    const know = <A>(name: string, secret: A): A => {
      assert(typeof secret === "string" && secret.length >= 8, name)
      secrets.set(name, secret)
      return secret
    }
    const call = (method: string, path: string, options: CallOptions = {}) => callTo(server.http, method, path, options)
    const post = (path: string, body?: object, headers: Readonly<Record<string, string>> = {}) =>
      Effect.map(call("POST", path, { body, headers }), ({ body }) => body.data)
    const sign = (method: SignMethod, secret: string, text: string) =>
      Effect.map(Mac, (mac) => mac.sign(method, secret, text))

    know("owner's key", ownerKey)
    know("another key", (yield* post("/access-keys", { name: forged, role: "operator" })).key)
    const guessed = know("a key that is none", `dck_${"g".repeat(12)}_${"9".repeat(43)}`)
    yield* call("GET", "/products", { key: guessed })
    yield* call("GET", `/products?access_key=${guessed}`, { key: "malformed-key-of-somebody" })
    know("a malformed key", "malformed-key-of-somebody")

    // Sessions of browsers: one that is known, and one that is not.
    const ofPage = { "x-csrf-protection": "1" }
    yield* call("POST", "/browser-sessions", { key: null, body: { access_key: guessed }, headers: ofPage })
    const begun = yield* call("POST", "/browser-sessions", {
      key: null,
      body: { access_key: ownerKey },
      headers: ofPage
    })
    const [, session] = /=([^;]+)/.exec(String(begun.headers["set-cookie"]))!
    know("token of a session", session)
    know("token of no session", "n".repeat(43))
    for (const token of [session, "n".repeat(43)]) {
      const cookie = `device-cloud-session=${token}`
      yield* call("GET", "/products", { key: null, headers: { cookie } })
      yield* call("DELETE", "/products/x", { key: null, headers: { cookie } })
    }

    const { product_info: product } = yield* post("/products", { ...productBody, dynamic_register: true }, {
      "idempotency-key": "first"
    })
    const { product_key } = product
    know("product secret", product.product_secret)
    const triple = yield* post(`/products/${product_key}/things`, { nickname: forged }, { "idempotency-key": "second" })
    know("device secret", triple.device_secret)
    const { device_id } = triple
    yield* call("GET", `/things/${device_id}/detail`)
    yield* call("GET", `/products/${product_key}/batch-things/1?format=csv`)

    // Signatures of devices, also on paths that nearly are right.
    const query = yield* signedQuery(triple, "PostProperty")
    know("signature over HTTP", query.sign)
    const text = new URLSearchParams(query).toString()
    for (const path of ["/thing-uplink", "/thing-uplink/", "/thing-uplinks", `/thing-uplink/${query.sign}`]) {
      for (const method of ["POST", "GET", "PUT"]) {
        yield* call(method, `${path}?${text}`, { key: null, body: { id: 1, params: { power: 1 } } })
      }
    }
    yield* call("POST", `/thing-uplink?${text}`, { key: null, raw: `{"params":` })
    const registration = yield* sign("hmacsha1", product.product_secret, `macAA:BBproductKey${product_key}random12345`)
    know("signature of a registration", registration)
    const registered = yield* call("POST", "/auth/register/device", {
      key: null,
      body: { product_key, random: "12345", mac: "AA:BB", sign_method: "hmacsha1", sign: registration }
    })
    assert.isDefined(registered.body.code)

    // Access tokens of devices, right and wrong.
    const clientId = "lamp"
    const { device_name, device_secret } = triple
    const connecting = `clientId${clientId}deviceName${device_name}productKey${product_key}`
    const signIn = know("signature of a sign-in", yield* sign("hmacsha1", device_secret, connecting))
    const signedIn = yield* call("POST", "//auth", {
      key: null,
      body: { productKey: product_key, deviceName: device_name, clientId, signmethod: "hmacsha1", sign: signIn }
    })
    const { token } = JSON.parse(signedIn.text).info
    know("access token", token)
    const topic = `/sys/${product_key}/${device_name}/thing/event/property/post`
    for (const path of [topic, "/nothing", `/${token}`]) {
      for (const password of [token, `${token}0`]) {
        yield* call("POST", `//topic${path}`, { key: null, body: { params: {} }, headers: { password } })
      }
    }

    // Connections with the right and a wrong signature, odd topics and user names.
    const device = {
      productKey: ProductKey.make(product_key),
      deviceName: DeviceName.make(triple.device_name),
      deviceSecret: triple.device_secret as string
    }
    know("signature over MQTT", MqttDevice.credentials(device).password)
    const connected = yield* MqttDevice.connectTo({ url: server.mqtt! }, device)
    yield* connected.post({ power: 1 }, { qos: 1 })
    for (const rest of [`user/${forged}`, `thing/${forged}`, forged]) yield* connected.say(rest, { forged })
    know("a wrong password", "wrong-password-of-a-device")
    for (const username of [undefined, forged, `${forged}&${product_key}`]) {
      yield* Effect.exit(
        MqttDevice.connectTo({ url: server.mqtt! }, device, {
          password: "wrong-password-of-a-device",
          ...username === undefined ? {} : { username }
        })
      )
    }

    // Addresses of objects: found, not found, and one whose file cannot be read.
    const form = `--b\r\ncontent-disposition: form-data; name="file"; filename="a.bin"\r\n\r\nbytes\r\n--b--\r\n`
    const { url } = (yield* call("POST", "/oss", {
      raw: form,
      headers: { "content-type": "multipart/form-data; boundary=b" }
    })).body.data
    const { pathname } = new URL(url)
    const objectId = know("address of an object", pathname.split("/")[2]!)
    for (
      const path of [pathname, `${pathname}/`, `/objects/${objectId}`, `/objects/${objectId}/other`, `/x/${objectId}`]
    ) {
      for (const method of ["GET", "HEAD", "POST"]) yield* call(method, `/${path}`, { key: null })
    }
    const file = join(dataDir, "objects", objectId, "object.json")
    // A link to itself: the error of the system names the file.
    yield* Effect.promise(() => rm(file).then(() => symlink(file, file)))
    assert.strictEqual((yield* call("GET", `/${pathname}`, { key: null })).status, 500)
    yield* call("DELETE", `/${pathname}`)

    // Webhooks, mesh networks, Bluetooth, binding.
    const webhook = know("address of a webhook", "http://127.0.0.1:1/hook-that-nobody-guesses")
    know("key of webhooks", (yield* post("/rule-engine/webhook-key")).key)
    const scene = yield* post("/rule-engine/scenes", {
      name: forged.replaceAll("\u0000", ""),
      status: "enable",
      actions: [{ URI: "action/webhook", params: { URL: webhook, method: "POST" } }]
    })
    if (scene !== undefined) {
      yield* post(`/rule-engine/scenes/${scene.id}/actions`)
      yield* eventually(call("GET", `/rule-engine/scenes/${scene.id}/executions`), {
        until: ({ body }) => body.data.results[0]?.actions[0]?.attempts > 0
      })
    }
    const mesh = yield* post("/mesh/networks")
    know("network key", mesh.network_key)
    know("application key", mesh.app_key)
    for (const path of [mesh.network_key, `${mesh.network_key}/nodes`, `${mesh.network_key}/nothing`, "x".repeat(32)]) {
      yield* call("GET", `/mesh/networks/${path}`)
      yield* call("POST", `/mesh/networks/${path}`, { body: {} })
    }
    const cipher = know("answer over Bluetooth", "c".repeat(32))
    yield* post(`/auth/ble/products/${product_key}/identity`, {
      product_key,
      device_name: triple.device_name,
      random: "0".repeat(32),
      cipher
    })
    know("bind random", (yield* post(`/products/${product_key}/device-names/${triple.device_name}/bind`)).random)
    yield* call("GET", "/products", { headers: { "x-request-id": "a=b forged" } })
    const metrics = (yield* call("GET", "//metrics", { key: null })).text

    // What fails is logged with its cause.
    const admin = Context.get(yield* Layer.build(PgClient.layer({ url: postgres })), PgClient.PgClient)
    const name = new URL(Redacted.value(databaseUrl)).pathname.slice(1)
    yield* admin`ALTER DATABASE ${admin(name)} ALLOW_CONNECTIONS false`
    yield* admin`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${name}`
    for (const path of [`/mesh/networks/${mesh.network_key}`, `/things?tag=${mesh.app_key}:x`]) {
      assert.isAtLeast((yield* call("GET", path)).status, 500)
    }
    yield* post("/products", { ...productBody, name: "Unlucky" }, { "idempotency-key": "third" })
    yield* server.child.kill()
    yield* server.child.exitCode

    const output = yield* server.output
    const traces = collected.text()
    assert.include(output, "GET /openapi/v1/things/")
    assert.include(output, "POST /openapi/v1/thing-uplink 200")
    assert.include(output, "GET /objects/:object_id/:file_name 200")
    // A node that has forgotten the access key meanwhile asks for that first; its connection may end under the request.
    assert.match(output, /(?:MeshStore\.get|AccessKeyStore\.find)(?: failed|: the storage cannot be reached)/)
    assert.include(output, "ObjectStore.find failed")
    assert.include(traces, "http.route")
    assert.include(traces, "device_cloud_http_requests_total")
    for (const [place, all] of Object.entries({ output, traces, metrics })) {
      for (const [secret, value] of secrets) assert.notInclude(all, value, `${secret} in ${place}`)
      assert.notMatch(all, /^\[00:00:00\.000\]/m, place)
      assert.notInclude(all, "\u001b[31mforged", place)
    }
  }).pipe(Effect.scoped, Effect.provide([NodeServices.layer, PlatformNode.layer])), 180_000)
