import { DeviceName, ProductKey } from "@device-cloud/core"
import { eventually } from "@device-cloud/testing"
import { callTo, ownerKey, productBody } from "@device-cloud/testing/http"
import { MqttDevice } from "@device-cloud/testing/mqtt"
import { NodeHttpServer, NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Queue, Redacted } from "effect"
import { HttpServer, HttpServerResponse } from "effect/http"
import { readFile, stat } from "node:fs/promises"
import { createServer } from "node:http"
import { get as getSecurely, request as sendSecurely } from "node:https"
import { type AddressInfo, connect as connectTcp, type Socket } from "node:net"
import { join } from "node:path"
import { newDatabase, newEmptyDatabase } from "../../../vitest.storages.ts"
import { explain } from "../src/Explanation.ts"
import { ServerConfig } from "../src/ServerConfig.ts"
import * as ServerProcess from "../src/ServerProcess.ts"
import { answerUnservedRequests } from "../src/UnservedRequests.ts"
import { main, temporaryDirectory } from "./TestServer.ts"

const start = (env: Readonly<Record<string, string>>) =>
  ServerProcess.start({
    env: { HTTP_PORT: "0", MQTTS_PORT: "0", ...env },
    nodeOptions: [],
    main
  })

type Server = Effect.Success<ReturnType<typeof start>>

/** For what waits for the restart of a database or for another try: two seconds and more. */
const patient = { timeout: "100 seconds" } as const

const get = (server: Server, path: string) =>
  Effect.promise(async () => {
    const response = await fetch(`${server.http}${path}`)
    return { status: response.status, text: await response.text() }
  })

const call = (server: Server, method: string, path: string, body?: object, key = ownerKey) =>
  Effect.map(callTo(server.http, method, path, { key, body }), ({ body }) => body)

/** A server that comes back after `kill -9`, on a database that lives on. */
const lasting = Effect.gen(function*() {
  const dataDir = yield* temporaryDirectory
  return { DATA_DIR: dataDir, ADMIN_KEY: ownerKey, DATABASE_URL: Redacted.value(yield* newDatabase) }
})

/** A product with one device; answers the device's id and triple. */
const createDevice = Effect.fnUntraced(function*(server: Server, key = ownerKey, fields = {}) {
  const product = { ...productBody, ...fields }
  const { data: { product_info: { product_key } } } = yield* call(server, "POST", "/products", product, key)
  const { data } = yield* call(server, "POST", `/products/${product_key}/things`, undefined, key)
  return {
    id: data.device_id as string,
    productKey: ProductKey.make(product_key),
    deviceName: DeviceName.make(data.device_name),
    deviceSecret: data.device_secret as string
  }
})

/** How to reach the broker; its certificate is for `localhost`. */
const broker = (server: Server, dataDir: string) =>
  Effect.map(
    Effect.promise(() => readFile(join(dataDir, "tls", "ca.pem"), "utf8")),
    (ca) => ({ url: server.mqtts.replace("127.0.0.1", "localhost"), ca })
  )

const counterOf = (server: Server, deviceId: string, key = ownerKey) =>
  Effect.map(
    call(server, "GET", `/things/${deviceId}/properties`, undefined, key),
    (answer) => {
      assert.strictEqual(answer.code, 0, JSON.stringify(answer))
      return answer.data.properties.counter as number
    }
  )

const untilStatus = (server: Server, deviceId: string, expected: string, key = ownerKey) =>
  eventually(call(server, "GET", `/things/${deviceId}/status`, undefined, key), {
    ...patient,
    until: ({ data }) => data.status === expected
  })

/** Posts 1, 2, 3 … with QoS 1, as fast as they are acknowledged; answers how to read the last one that was. */
const postWithoutEnd = Effect.fnUntraced(function*(device: MqttDevice.MqttDevice) {
  let sent = 0
  let acknowledged = 0
  const post = Effect.suspend(() => {
    const counter = ++sent
    return Effect.andThen(
      device.post({ counter }, { qos: 1 }),
      Effect.sync(() => {
        if (device.client.connected) acknowledged = counter
      })
    )
  })
  yield* Effect.forkScoped(Effect.forever(post))
  return {
    acknowledged: Effect.sync(() => acknowledged),
    /** Until so many more were acknowledged. */
    progress: (count: number) =>
      Effect.suspend(() => {
        const goal = acknowledged + count
        return eventually(Effect.sync(() => acknowledged), { ...patient, until: (now) => now >= goal })
      })
  }
})

const live = (name: string, test: Effect.Effect<void, unknown, Effect.Services<ReturnType<typeof start>>>) =>
  it.live(name, () => test.pipe(Effect.scoped, Effect.provide(NodeServices.layer)), 120_000)

live(
  "runs on memory, says where it is, serves the API and MQTT over WebSocket over TLS, and stops when it is told to",
  Effect.gen(function*() {
    const dataDir = yield* temporaryDirectory
    const ports = { HTTPS_PORT: "0", MQTT_PORT: "0" }
    const server = yield* start({ STORAGE: "memory", DATA_DIR: dataDir, ADMIN_KEY: ownerKey, ...ports })
    assert.match(server.http, /^http:\/\/127\.0\.0\.1:\d+$/)
    assert.match(server.mqtts, /^mqtts:\/\/127\.0\.0\.1:\d+$/)
    assert.match(server.mqtt!, /^mqtt:\/\/127\.0\.0\.1:\d+$/)
    assert.strictEqual(server.adminKey, undefined)
    for (const path of ["/healthz", "/readyz", "/metrics", "/docs", "/openapi.json", "/console", "/console/devices"]) {
      assert.strictEqual((yield* get(server, path)).status, 200, path)
    }
    const device = yield* createDevice(server)
    const endpoint = yield* broker(server, dataDir)
    const connected = yield* MqttDevice.connectTo(endpoint, device)
    yield* MqttDevice.connectTo({ url: server.mqtt! }, device)
    yield* connected.closed
    assert.match(server.https!, /^https:\/\/127\.0\.0\.1:\d+$/)
    const { ca } = endpoint
    const status = yield* Effect.callback<number | undefined>((resume) => {
      const path = `${server.https}/openapi/v1/products`
      getSecurely(path, { ca, headers: { authorization: `Bearer ${ownerKey}` } }, (response) => {
        response.resume()
        resume(Effect.succeed(response.statusCode))
      })
    })
    assert.strictEqual(status, 200)
    const cookie = yield* Effect.callback<string | undefined>((resume) => {
      const headers = { "content-type": "application/json", "x-csrf-protection": "1", origin: server.https! }
      sendSecurely(`${server.https}/openapi/v1/browser-sessions`, { ca, method: "POST", headers }, (response) => {
        response.resume()
        resume(Effect.succeed(response.headers["set-cookie"]?.[0]))
      }).end(JSON.stringify({ access_key: ownerKey }))
    })
    assert.match(String(cookie), /^__Host-device-cloud-session=.*; Secure; SameSite=Strict$/)
    const url = `${server.https!.replace("https", "wss").replace("127.0.0.1", "localhost")}/mqtt`
    const options = { options: { wsOptions: { ca } } }
    const secure = yield* MqttDevice.connectTo({ url, ca }, device, options)
    yield* secure.post({ counter: 1 }, { qos: 1 })
    assert.strictEqual((yield* secure.take).message.code, 200)
    yield* server.child.kill()
    assert.strictEqual(yield* server.child.exitCode, 0)
  })
)

live(
  "takes client certificates over MQTT, HTTPS and WebSocket, of which HTTPS asks for them if it is told to",
  Effect.gen(function*() {
    const dataDir = yield* temporaryDirectory
    const env = { STORAGE: "memory", DATA_DIR: dataDir, ADMIN_KEY: ownerKey, HTTPS_PORT: "0" }
    const server = yield* start({ ...env, HTTPS_CLIENT_CERTIFICATES: "true" })
    const device = yield* createDevice(server, ownerKey, { auth_type: "certificate" })
    const { data } = yield* call(server, "POST", `/things/${device.id}/certificates`, {})
    const { ca, url } = yield* broker(server, dataDir)
    const certificate = { ca, cert: data.certificate as string, key: data.private_key as string }
    const unsigned = { extension: "", password: "" }
    const webSocket = `${server.https!.replace("https", "wss").replace("127.0.0.1", "localhost")}/mqtt`
    for (const options of [certificate, { wsOptions: certificate }]) {
      const endpoint = options === certificate ? { url, ca } : { url: webSocket, ca }
      const connected = yield* MqttDevice.connectTo(endpoint, device, { ...unsigned, options })
      yield* connected.post({ counter: 1 }, { qos: 1 })
      assert.strictEqual((yield* connected.take).message.code, 200)
    }
    const post = (with_: object) =>
      Effect.callback<string>((resume) => {
        const { deviceName, productKey } = device
        const query = new URLSearchParams({
          product_key: productKey,
          device_name: deviceName,
          action: "PostProperty"
        })
        const request = sendSecurely(
          `${server.https}/openapi/v1/thing-uplink?${query.toString()}`,
          { method: "POST", headers: { "content-type": "application/json" }, agent: false, ...with_ },
          (response) => {
            let text = ""
            response.on("data", (chunk) => (text += String(chunk)))
            response.on("end", () => resume(Effect.succeed(text)))
          }
        )
        request.end(JSON.stringify({ params: { counter: 2 } }))
      })
    assert.deepInclude(JSON.parse(yield* post(certificate)), { code: 0 })
    assert.strictEqual(yield* counterOf(server, device.id), 2)
    assert.deepInclude(JSON.parse(yield* post({ ca })), { code: 40001 })
    yield* server.child.kill()
    assert.strictEqual(yield* server.child.exitCode, 0)
  })
)

live(
  "takes new clients while idle connections hold all that there may be, over HTTP, HTTPS and MQTT",
  Effect.gen(function*() {
    const dataDir = yield* temporaryDirectory
    const ports = { HTTPS_PORT: "0", MQTT_PORT: "0" }
    const env = { STORAGE: "memory", DATA_DIR: dataDir, ADMIN_KEY: ownerKey, MAX_CONNECTIONS: "100", ...ports }
    const server = yield* start(env)
    const device = yield* createDevice(server)
    for (const url of [server.http, server.https!, server.mqtt!, server.mqtts]) {
      const port = Number(new URL(url).port)
      const sockets = yield* Effect.forEach(
        Array.from({ length: 150 }),
        () =>
          Effect.acquireRelease(
            Effect.callback<Socket>((resume) => {
              const socket = connectTcp(port, "127.0.0.1", () => resume(Effect.succeed(socket.resume())))
              socket.on("error", () => {})
            }),
            (socket) => Effect.sync(() => socket.destroy())
          )
      )
      // HTTP and HTTPS have half each.
      const maximum = url.startsWith("http") ? 50 : 100
      yield* eventually(Effect.sync(() => sockets.filter(({ closed }) => !closed).length), {
        until: (open) => open <= maximum
      })
    }
    assert.strictEqual((yield* get(server, "/healthz")).status, 200)
    const { ca } = yield* broker(server, dataDir)
    const status = yield* Effect.callback<number | undefined>((resume) => {
      const request = getSecurely(`${server.https}/healthz`, { ca }, (response) => {
        response.resume()
        resume(Effect.succeed(response.statusCode))
      })
      request.on("error", (error) => resume(Effect.die(error)))
    })
    assert.strictEqual(status, 200)
    yield* MqttDevice.connectTo({ url: server.mqtt! }, device)
    yield* MqttDevice.connectTo(yield* broker(server, dataDir), device)
  })
)

live(
  "lets pages of named origins read responses, and devices speak plain HTTP from afar, where it is told to",
  Effect.gen(function*() {
    const origin = "https://console.example.com"
    const env = { STORAGE: "memory", ADMIN_KEY: ownerKey, TRUSTED_PROXIES: "127.0.0.1" }
    const [open, closed] = yield* Effect.all([
      start({ ...env, DATA_DIR: yield* temporaryDirectory, CORS_ORIGINS: origin, ALLOW_PLAIN_HTTP: "true" }),
      start({ ...env, DATA_DIR: yield* temporaryDirectory })
    ], { concurrency: 2 })
    const uplink = (server: Server) =>
      Effect.map(
        callTo(server.http, "POST", "/thing-uplink", { key: null, headers: { "x-forwarded-for": "203.0.113.7" } }),
        ({ body }) => body.code
      )
    assert.strictEqual(yield* uplink(closed), 40_303)
    assert.strictEqual(yield* uplink(open), 40_001)
    const allowed = (server: Server, page: string) =>
      Effect.map(
        callTo(server.http, "GET", "/products", { headers: { origin: page } }),
        ({ headers }) => headers["access-control-allow-origin"]
      )
    assert.strictEqual(yield* allowed(open, origin), origin)
    assert.isUndefined(yield* allowed(open, "https://elsewhere.example.com"))
    assert.isUndefined(yield* allowed(closed, origin))
  })
)

live(
  "serves metrics and documentation on a port of their own, and neither documentation nor console when it is told not to",
  Effect.gen(function*() {
    const env = { STORAGE: "memory", DATA_DIR: yield* temporaryDirectory, ADMIN_KEY: ownerKey }
    const apart = yield* start({ ...env, METRICS_PORT: "0" })
    const statuses = (url: string) =>
      Effect.forEach(
        ["/healthz", "/readyz", "/metrics", "/docs", "/openapi.json"],
        (path) => Effect.promise(() => fetch(`${url}${path}`).then(({ status }) => status))
      )
    assert.deepStrictEqual(yield* statuses(apart.http), [200, 200, 404, 404, 404])
    assert.deepStrictEqual(yield* statuses(apart.operations!), [200, 200, 200, 200, 200])
    const silent = yield* start({ ...env, DOCS: "off" })
    assert.deepStrictEqual(yield* statuses(silent.http), [200, 200, 200, 404, 404])
    const plain = yield* start({ ...env, CONSOLE: "off" })
    const homeOf = ({ http }: typeof plain) =>
      Effect.promise(() => fetch(http, { redirect: "manual" }).then(({ headers }) => headers.get("location")))
    assert.deepStrictEqual([yield* homeOf(apart), yield* homeOf(silent), yield* homeOf(plain)], [
      "/console",
      "/console",
      "/docs"
    ])
    assert.strictEqual((yield* get(plain, "/console")).status, 404)
  })
)

it.live("answers requests that come before the API is there", () =>
  Effect.gen(function*() {
    const server = createServer()
    answerUnservedRequests(server, { watch: () => {} })
    const { address, serve } = yield* NodeHttpServer.make(() => server, { port: 0, host: "127.0.0.1" })
    const answer = Effect.promise(async () => {
      const response = await fetch(HttpServer.formatAddress(address), { method: "POST", body: "{}" })
      return { status: response.status, headers: response.headers, text: await response.text() }
    })
    const early = yield* answer
    assert.strictEqual(early.status, 503)
    assert.strictEqual(early.headers.get("retry-after"), "1")
    assert.isNotNull(early.headers.get("x-request-id"))
    assert.strictEqual(early.headers.get("x-content-type-options"), "nosniff")
    assert.strictEqual(JSON.parse(early.text).code, 50300)

    yield* serve(Effect.succeed(HttpServerResponse.text("served")))
    assert.deepInclude(yield* answer, { status: 200, text: "served" })
  }).pipe(Effect.scoped))

live(
  "keeps its data, its key and its certificate over a restart on the embedded database",
  Effect.gen(function*() {
    const dataDir = yield* temporaryDirectory
    const first = yield* start({ DATA_DIR: dataDir })
    const key = first.adminKey!
    for (const file of ["admin-key", "secrets-key"]) {
      assert.strictEqual((yield* Effect.promise(() => stat(join(dataDir, file)))).mode & 0o777, 0o600)
    }
    const device = yield* createDevice(first, key)
    const to = yield* broker(first, dataDir)
    const posts = yield* postWithoutEnd(yield* MqttDevice.connectTo(to, device))
    yield* posts.progress(200)
    yield* first.child.kill()
    assert.strictEqual(yield* first.child.exitCode, 0)

    const second = yield* start({ DATA_DIR: dataDir })
    assert.strictEqual(second.adminKey, undefined)
    assert.isAtLeast(yield* counterOf(second, device.id, key), yield* posts.acknowledged)
    assert.strictEqual(
      (yield* call(second, "GET", `/things/${device.id}/status`, undefined, key)).data.status,
      "offline"
    )
    const again = yield* broker(second, dataDir)
    assert.strictEqual(again.ca, to.ca)
    assert.strictEqual(yield* MqttDevice.connackFrom(again, device), 0)

    const refused = yield* Effect.flip(start({ DATA_DIR: dataDir }))
    assert.strictEqual(refused._tag, "ServerEnded")
    assert.include(refused.message, "Another server uses")
  })
)

for (const STORAGE of ["postgres", "sqlite"]) {
  live(
    `loses nothing that it acknowledged when it is killed, and takes over its database, on ${STORAGE}`,
    Effect.gen(function*() {
      const dataDir = yield* temporaryDirectory
      const env = { DATA_DIR: dataDir, ADMIN_KEY: ownerKey, STORAGE }
      const first = yield* start(env)
      const device = yield* createDevice(first)
      const posts = yield* postWithoutEnd(yield* MqttDevice.connectTo(yield* broker(first, dataDir), device))
      yield* posts.progress(200)
      yield* Effect.ignore(first.child.kill({ killSignal: "SIGKILL" }))

      const second = yield* start(env)
      assert.isAtLeast(yield* counterOf(second, device.id), yield* posts.acknowledged)
      yield* untilStatus(second, device.id, "offline")
      yield* MqttDevice.connectTo(yield* broker(second, dataDir), device)
      yield* untilStatus(second, device.id, "online")
    })
  )
}

live(
  "uses a file of SQLite alone, and goes on with it after a stop",
  Effect.gen(function*() {
    const dataDir = yield* temporaryDirectory
    const env = { DATA_DIR: dataDir, ADMIN_KEY: ownerKey, STORAGE: "sqlite" }
    const first = yield* start(env)
    const device = yield* createDevice(first)
    const refused = yield* Effect.flip(start(env))
    assert.include(refused.message, `${dataDir}/device-cloud.sqlite cannot be used: another process uses it`)
    yield* first.child.kill()
    assert.strictEqual(yield* first.child.exitCode, 0)

    const second = yield* start(env)
    yield* MqttDevice.connectTo(yield* broker(second, dataDir), device)
    yield* untilStatus(second, device.id, "online")
  })
)

live(
  "calls a webhook again that was not taken when it was killed, by the same id",
  Effect.gen(function*() {
    const calls = yield* Queue.unbounded<string>()
    let count = 0
    const receiver = createServer((request, response) => {
      Queue.offerUnsafe(calls, String(request.headers["webhook-id"]))
      response.writeHead(count++ === 0 ? 503 : 200).end()
    })
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => {
        receiver.listen(0, "127.0.0.1", () => resume(Effect.void))
      }),
      () => Effect.sync(() => receiver.close())
    )
    const URL = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
    const env = { ...yield* lasting, WEBHOOK_ALLOW_PRIVATE: "true" }
    const scene = {
      name: "Calls",
      status: "enable",
      actions: [{ URI: "action/webhook", params: { URL, method: "POST" } }]
    }
    const first = yield* start(env)
    const { data: { id } } = yield* call(first, "POST", "/rule-engine/scenes", scene)
    const { data: { execution_id } } = yield* call(first, "POST", `/rule-engine/scenes/${id}/actions`)
    const webhookId = yield* Queue.take(calls)
    const latest = (server: Server) =>
      Effect.map(call(server, "GET", `/rule-engine/scenes/${id}/executions`), ({ data }) => data.results[0])
    yield* eventually(latest(first), { ...patient, until: ({ actions }) => actions[0].attempts === 1 })
    yield* Effect.ignore(first.child.kill({ killSignal: "SIGKILL" }))

    const second = yield* start(env)
    assert.strictEqual(yield* Queue.take(calls), webhookId)
    const ended = yield* eventually(latest(second), { ...patient, until: ({ status }) => status === "succeeded" })
    assert.strictEqual(ended.execution_id, execution_id)
    assert.deepInclude(ended.actions[0], { attempts: 2, detail: "Answered with 200" })
  })
)

live(
  "delivers a command again that was under way when it was killed",
  Effect.gen(function*() {
    const env = yield* lasting
    const dataDir = env.DATA_DIR
    const first = yield* start(env)
    const device = yield* createDevice(first)
    // It reads nothing after its connection: what is sent to it is not confirmed.
    const frozen = yield* MqttDevice.connectTo(yield* broker(first, dataDir), device)
    frozen.client.stream.pause()
    const set = (server: Server, level: number) =>
      Effect.map(
        call(server, "POST", `/things/${device.id}/properties`, { params: { level } }),
        ({ data }) => data.message_id as string
      )
    const ids = [yield* set(first, 1), yield* set(first, 2)]
    const stateOf = (server: Server, id: string) =>
      Effect.map(call(server, "GET", `/things/${device.id}/messages/${id}`), ({ data }) => data.state as string)
    yield* eventually(stateOf(first, ids[1]!), { ...patient, until: (state) => state === "sent" })
    yield* Effect.ignore(first.child.kill({ killSignal: "SIGKILL" }))

    const second = yield* start(env)
    yield* untilStatus(second, device.id, "offline")
    ids.push(yield* set(second, 3))
    const back = yield* MqttDevice.connectTo(yield* broker(second, dataDir), device)
    const received: Array<string> = []
    while (received.length < ids.length) {
      const { message } = yield* back.take
      if (message["method"] !== "thing.service.property.set") continue
      received.push(String(message["id"]))
      yield* back.publish(
        back.topic("thing/service/property/set_reply"),
        JSON.stringify({ id: message["id"], code: 200, data: {} }),
        1
      )
    }
    assert.deepStrictEqual(received, ids)
    for (const id of ids) {
      yield* eventually(stateOf(second, id), { ...patient, until: (state) => state === "succeeded" })
    }
  })
)

live(
  "carries an upgrade on that was under way when it was killed, with objects and WebSocket",
  Effect.gen(function*() {
    const env = yield* lasting
    const dataDir = env.DATA_DIR
    const first = yield* start(env)
    const device = yield* createDevice(first)
    const form = new FormData()
    form.append("file", new Blob(["firmware"]), "firmware.bin")
    const uploaded = yield* Effect.promise(async () => {
      const response = await fetch(`${first.http}/openapi/v1/oss/ota/${device.productKey}`, {
        method: "POST",
        headers: { authorization: `Bearer ${ownerKey}` },
        body: form
      })
      return await response.json() as { readonly data: { readonly filename: string; readonly md5: string } }
    })
    assert.isTrue(uploaded.data.filename.startsWith(`${first.http}/objects/`))
    const connected = yield* MqttDevice.connectTo(yield* broker(first, dataDir), device)
    const inform = (from: typeof connected, version: string) =>
      from.publish(
        `/ota/device/inform/${device.productKey}/${device.deviceName}`,
        JSON.stringify({ id: 1, params: { version } }),
        1
      )
    yield* inform(connected, "1.0.0")
    const { data: firmware } = yield* call(first, "POST", `/products/${device.productKey}/ota/firmwares`, {
      name: "Sensor",
      version: "1.1.0",
      oss_path: uploaded.data.filename,
      algorithms: 1,
      hash: uploaded.data.md5
    })
    const { data: { task_id } } = yield* call(first, "POST", `/ota/firmwares/${firmware.id}/upgrade-tasks`, {
      scope_mode: 0,
      cloud_push: true
    })
    assert.deepInclude((yield* connected.take).message, { code: "1000" })
    yield* Effect.ignore(first.child.kill({ killSignal: "SIGKILL" }))

    const second = yield* start(env)
    const { pathname } = new URL(uploaded.data.filename)
    assert.strictEqual((yield* get(second, pathname)).text, "firmware")
    const statusOf = Effect.map(
      call(second, "GET", `/ota/upgrade-tasks/${task_id}`),
      ({ data }) => data.results[0].status as number
    )
    assert.strictEqual(yield* statusOf, 2)
    const back = yield* MqttDevice.connectTo({ url: `${second.http.replace("http", "ws")}/mqtt` }, device)
    yield* inform(back, "1.0.0")
    assert.deepInclude((yield* back.take).message, { code: "1000" })
    yield* inform(back, "1.1.0")
    yield* eventually(statusOf, { ...patient, until: (status) => status === 3 })
  })
)

live(
  "answers what is no HTTP with an envelope, stays up, and says of its port that it is taken",
  Effect.gen(function*() {
    const server = yield* start({ STORAGE: "memory", DATA_DIR: yield* temporaryDirectory })
    const { port } = new URL(server.http)
    const exchange = (text: string) =>
      Effect.callback<string>((resume) => {
        let answer = ""
        const socket = connectTcp(Number(port), "127.0.0.1", () => socket.write(text))
        socket.on("data", (bytes) => answer += bytes)
        socket.on("error", () => {})
        socket.once("close", () => resume(Effect.succeed(answer)))
      })
    for (
      const [text, status] of [
        ["garbage\r\n\r\n", 400],
        ["GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400],
        [`GET / HTTP/1.1\r\nX: ${"x".repeat(20_000)}\r\n\r\n`, 431],
        ["GET /x HTTP/1.1\r\nConnection: close\r\n\r\n", 404],
        ["GET /x HTTP/1.1\r\nHost: a\r\nExpect: foo\r\nConnection: close\r\n\r\n", 404]
      ] as const
    ) {
      const answer = yield* exchange(text)
      assert.include(answer, `HTTP/1.1 ${status} `, text.slice(0, 40))
      assert.match(answer, /x-request-id: /i)
      assert.isNumber(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n"))).code)
    }
    assert.strictEqual((yield* get(server, "/healthz")).status, 200)
    const { port: taken } = new URL(server.mqtts)
    const refused = yield* Effect.flip(
      start({ STORAGE: "memory", DATA_DIR: yield* temporaryDirectory, MQTTS_PORT: taken })
    )
    assert.include(refused.message, "MQTTS_PORT")
    assert.include(refused.message, taken)
  })
)

live(
  "acknowledges nothing while the database is gone, and goes on when it is back",
  Effect.gen(function*() {
    const dataDir = yield* temporaryDirectory
    const server = yield* start({ DATA_DIR: dataDir, ADMIN_KEY: ownerKey })
    const device = yield* createDevice(server)
    const connected = yield* MqttDevice.connectTo(yield* broker(server, dataDir), device)
    const posts = yield* postWithoutEnd(connected)
    for (let round = 0; round < 2; round++) {
      yield* posts.progress(100)
      const pidFile = yield* Effect.promise(() => readFile(join(dataDir, "postgres", "data", "postmaster.pid"), "utf8"))
      process.kill(Number.parseInt(pidFile), "SIGKILL")
      yield* eventually(get(server, "/readyz"), { ...patient, until: ({ status }) => status === 503 })
      const unavailable = yield* call(server, "GET", "/products")
      assert.include([0, 50300], unavailable.code)
      assert.strictEqual((yield* get(server, "/healthz")).status, 200)
      yield* eventually(get(server, "/readyz"), { ...patient, until: ({ status }) => status === 200 })
      yield* posts.progress(100)
    }
    const acknowledged = yield* posts.acknowledged
    assert.isAtLeast(yield* counterOf(server, device.id), acknowledged)
    assert.strictEqual(connected.client.connected, true)
    yield* untilStatus(server, device.id, "online")
  })
)

live(
  "shares a database with other servers that start at the same time",
  Effect.gen(function*() {
    const [one, two] = [yield* temporaryDirectory, yield* temporaryDirectory]
    const url = Redacted.value(yield* newEmptyDatabase)
    const env = { DATABASE_URL: url, ADMIN_KEY: ownerKey, SECRETS_KEY: `${"s".repeat(42)}A=` }
    const [first, second] = yield* Effect.all([start({ ...env, DATA_DIR: one }), start({ ...env, DATA_DIR: two })], {
      concurrency: "unbounded"
    })
    const device = yield* createDevice(first)
    yield* MqttDevice.connectTo(yield* broker(first, one), device)
    yield* untilStatus(second, device.id, "online")
    yield* second.child.kill()
    assert.strictEqual((yield* call(first, "GET", `/things/${device.id}/status`)).data.status, "online")
    const refused = yield* Effect.flip(start({ DATABASE_URL: url, ADMIN_KEY: ownerKey, DATA_DIR: two }))
    assert.strictEqual(refused._tag, "ServerEnded")
    assert.match(
      refused.message,
      /SECRETS_KEY, or DATA_DIR: the stored secrets are sealed under master key [0-9a-f]{16}/
    )
  })
)

const refused = (output: string, variable: string) => {
  assert.include(output, `Device Cloud cannot run. ${variable}: `)
  assert.notInclude(output, "hunter2")
  assert.strictEqual(output.trim().split("\n").length, 1)
}

type WrongSettings = ReadonlyArray<readonly [string, Readonly<Record<string, string>>]>

it.live.each([
  ["HTTP_PORT", { HTTP_PORT: "x" }],
  ["HTTP_HOST, HTTP_PORT", { HTTP_HOST: "192.0.2.1" }],
  ["ADMIN_KEY", { ADMIN_KEY: "dck_short_key" }],
  ["SECRETS_KEY", { STORAGE: "postgres", DATABASE_URL: "postgres://127.0.0.1:1/none", SECRETS_KEY: "hunter2" }],
  ["TLS_CERT_FILE", { TLS_CERT_FILE: "/nowhere", TLS_KEY_FILE: "/nowhere" }],
  ["DATABASE_URL", { STORAGE: "postgres", DATABASE_URL: "postgres://user:hunter2@127.0.0.1:1/none" }]
] as WrongSettings)(
  "does not start with a wrong %s, and says so",
  ([variable, env]) =>
    Effect.gen(function*() {
      const ended = yield* Effect.flip(start({ STORAGE: "memory", DATA_DIR: yield* temporaryDirectory, ...env }))
      assert.strictEqual(ended._tag, "ServerEnded")
      if (ended._tag !== "ServerEnded") return
      assert.strictEqual(ended.exitCode, 1)
      refused(ended.output, variable)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)

it.effect.each([
  ["HTTP_PORT", { HTTP_PORT: "65536" }],
  ["MQTT_PORT", { MQTT_PORT: "-1" }],
  ["STORAGE", { STORAGE: "redis" }],
  ["LOG_LEVEL", { LOG_LEVEL: "loud" }],
  ["TLS_CERT_FILE and TLS_KEY_FILE", { TLS_CERT_FILE: "/nowhere" }]
] as WrongSettings)(
  "takes no wrong %s, and says so",
  ([variable, env]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(ServerConfig.fromEnv({ STORAGE: "memory", DATA_DIR: "/nowhere", ...env }))
      refused(`Device Cloud cannot run. ${explain(error)}`, variable)
    })
)
