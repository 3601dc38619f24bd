import { eventually } from "@device-cloud/testing"
import { callTo, ownerKey } from "@device-cloud/testing/http"
import { MqttDevice } from "@device-cloud/testing/mqtt"
import { NodeHttpServer } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { once } from "node:events"
import { existsSync, readFileSync } from "node:fs"
import {
  createServer,
  type IncomingMessage,
  request as send,
  type RequestListener,
  type ServerResponse
} from "node:http"
import { get as getSecurely, request as sendSecurely } from "node:https"
import { connect as connectTcp, type Socket } from "node:net"
import { answerUnservedRequests } from "../src/UnservedRequests.ts"
import {
  broker,
  call,
  counterOf,
  createDevice,
  get,
  live,
  type Server,
  startWith,
  temporaryDirectory
} from "./TestServer.ts"

live(
  "runs on memory, says where it is, serves the API and MQTT over WebSocket over TLS, and stops when it is told to",
  Effect.gen(function*() {
    const dataDir = yield* temporaryDirectory
    const ports = { HTTPS_PORT: "0", MQTT_PORT: "0" }
    const server = yield* startWith({ STORAGE: "memory", DATA_DIR: dataDir, ADMIN_KEY: ownerKey, ...ports })
    assert.match(server.http, /^http:\/\/127\.0\.0\.1:\d+$/)
    assert.match(server.mqtts, /^mqtts:\/\/127\.0\.0\.1:\d+$/)
    assert.match(server.mqtt!, /^mqtt:\/\/127\.0\.0\.1:\d+$/)
    assert.strictEqual(server.adminKey, undefined)
    for (const path of ["/healthz", "/readyz", "/metrics", "/docs", "/openapi.json", "/console", "/console/devices"]) {
      assert.strictEqual((yield* get(server, path)).status, 200, path)
    }
    const device = yield* createDevice(server.http)
    const endpoint = yield* broker(server, dataDir)
    const connected = yield* MqttDevice.connectTo(endpoint, device)
    yield* MqttDevice.connectTo({ url: server.mqtt! }, device)
    yield* connected.closed
    assert.match(server.https!, /^https:\/\/127\.0\.0\.1:\d+$/)
    const { ca } = endpoint
    const secured = yield* Effect.callback<IncomingMessage>((resume) => {
      const path = `${server.https}/openapi/v1/products`
      getSecurely(path, { ca, headers: { authorization: `Bearer ${ownerKey}` } }, (response) => {
        response.resume()
        resume(Effect.succeed(response))
      })
    })
    assert.strictEqual(secured.statusCode, 200)
    const plain = yield* Effect.promise(() => fetch(`${server.http}/healthz`))
    assert.deepStrictEqual(
      [plain.headers.get("keep-alive"), secured.headers["keep-alive"]],
      Array(2).fill("timeout=75")
    )
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
  "takes the body of a POST whose client offers HTTP/2 over plain HTTP",
  Effect.gen(function*() {
    const dataDir = yield* temporaryDirectory
    const server = yield* startWith({ STORAGE: "memory", DATA_DIR: dataDir, ADMIN_KEY: ownerKey })
    const offer = { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c", "http2-settings": "AAMAAABk" }
    const text = yield* Effect.callback<string>((resume) => {
      const request = send(
        `${server.http}/openapi/v1/projects`,
        { method: "POST", headers: { ...offer, authorization: `Bearer ${ownerKey}` }, agent: false },
        (response) => response.once("data", (chunk) => resume(Effect.succeed(String(chunk))))
      )
      request.end(JSON.stringify({ name: "Offers HTTP/2" }))
    })
    assert.deepInclude(JSON.parse(text).data, { name: "Offers HTTP/2" })
    yield* server.child.kill()
    assert.strictEqual(yield* server.child.exitCode, 0)
  })
)

live(
  "takes client certificates over MQTT, HTTPS and WebSocket, of which HTTPS asks for them if it is told to",
  Effect.gen(function*() {
    const dataDir = yield* temporaryDirectory
    const env = { STORAGE: "memory", DATA_DIR: dataDir, ADMIN_KEY: ownerKey, HTTPS_PORT: "0" }
    const server = yield* startWith({ ...env, HTTPS_CLIENT_CERTIFICATES: "true" })
    const device = yield* createDevice(server.http, ownerKey, { auth_type: "certificate" })
    const { data } = yield* call(server.http, "POST", `/things/${device.id}/certificates`, {})
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
    const server = yield* startWith(env)
    const device = yield* createDevice(server.http)
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
      startWith({ ...env, DATA_DIR: yield* temporaryDirectory, CORS_ORIGINS: origin, ALLOW_PLAIN_HTTP: "true" }),
      startWith({ ...env, DATA_DIR: yield* temporaryDirectory })
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
    const apart = yield* startWith({ ...env, METRICS_PORT: "0" })
    const statuses = (url: string) =>
      Effect.forEach(
        ["/healthz", "/readyz", "/metrics", "/docs", "/openapi.json"],
        (path) => Effect.promise(() => fetch(`${url}${path}`).then(({ status }) => status))
      )
    assert.deepStrictEqual(yield* statuses(apart.http), [200, 200, 404, 404, 404])
    assert.deepStrictEqual(yield* statuses(apart.operations!), [200, 200, 200, 200, 200])
    const silent = yield* startWith({ ...env, DOCS: "off" })
    assert.deepStrictEqual(yield* statuses(silent.http), [200, 200, 200, 404, 404])
    const plain = yield* startWith({ ...env, CONSOLE: "off" })
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

/** What the system lets wait at most; elsewhere than on Linux nobody knows. */
const mayWait = existsSync("/proc/sys/net/core/somaxconn")
  ? Number(readFileSync("/proc/sys/net/core/somaxconn", "utf8"))
  : 0

if (mayWait >= 1000) {
  live(
    "a thousand connections that come while the server does something else wait at each of its ports",
    Effect.gen(function*() {
      const server = yield* startWith({
        STORAGE: "memory",
        DATA_DIR: yield* temporaryDirectory,
        MQTT_PORT: "0",
        HTTPS_PORT: "0"
      })
      const { pid } = server.child
      yield* Effect.acquireRelease(
        Effect.sync(() => process.kill(pid, "SIGSTOP")),
        () => Effect.sync(() => process.kill(pid, "SIGCONT"))
      )
      for (const url of [server.http, server.https!, server.mqtt!, server.mqtts]) {
        const sockets = Array.from({ length: 1000 }, () => connectTcp(Number(new URL(url).port), "127.0.0.1"))
        yield* Effect.promise(() => Promise.all(sockets.map((socket) => once(socket, "connect"))))
        for (const socket of sockets) socket.destroy()
      }
    })
  )
}

it.live("lets requests wait that come before the API is there, and refuses those that come after it", () =>
  Effect.gen(function*() {
    const server = createServer()
    const arrived: Array<ServerResponse> = []
    answerUnservedRequests(server, { watch: (response) => void arrived.push(response) })
    const { address, serve } = yield* NodeHttpServer.make(() => server, { port: 0, host: "127.0.0.1" })
    const answer = Effect.promise(async () => {
      const response = await fetch(HttpServer.formatAddress(address), { method: "POST", body: "{}" })
      return { status: response.status, headers: response.headers, text: await response.text() }
    })
    const early = yield* Effect.forkScoped(answer)
    yield* eventually(Effect.sync(() => arrived.length), { until: (count) => count === 1 })
    const abandoned = send(HttpServer.formatAddress(address)).on("error", () => {}).end()
    yield* eventually(Effect.sync(() => arrived.length), { until: (count) => count === 2 })
    abandoned.destroy()
    yield* eventually(Effect.sync(() => arrived[1]!.destroyed), { until: (destroyed) => destroyed })

    let served = 0
    const echo = Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ text }) => {
      served++
      return Effect.map(Effect.orDie(text), HttpServerResponse.text)
    })
    yield* serve(echo)
    assert.deepInclude(yield* Fiber.join(early), { status: 200, text: "{}" })
    assert.deepInclude(yield* answer, { status: 200, text: "{}" })
    assert.strictEqual(served, 2)

    // As when the server stops.
    const [, ...api] = server.listeners("request") as Array<RequestListener>
    for (const listener of api) server.off("request", listener)
    const late = yield* answer
    assert.strictEqual(late.status, 503)
    assert.strictEqual(late.headers.get("retry-after"), "1")
    assert.isNotNull(late.headers.get("x-request-id"))
    assert.strictEqual(late.headers.get("x-content-type-options"), "nosniff")
    assert.strictEqual(JSON.parse(late.text).code, 50300)
  }).pipe(Effect.scoped))

live(
  "answers what is no HTTP with an envelope, stays up, and says of its port that it is taken",
  Effect.gen(function*() {
    const server = yield* startWith({ STORAGE: "memory", DATA_DIR: yield* temporaryDirectory })
    const { port } = new URL(server.http)
    const exchange = (text: string) =>
      Effect.callback<string>((resume) => {
        let answer = ""
        const socket = connectTcp({ port: Number(port), host: "127.0.0.1", allowHalfOpen: true }, () =>
          socket.write(text))
        socket.on("data", (bytes) =>
          answer += bytes)
        socket.on("error", () => {})
        socket.once("end", () => {
          // Only what is sent shows that the server is not there any more.
          const sending = setInterval(() => socket.write("x"), 10)
          socket.once("close", () => clearInterval(sending))
        })
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
      startWith({ STORAGE: "memory", DATA_DIR: yield* temporaryDirectory, MQTTS_PORT: taken })
    )
    assert.include(refused.message, "MQTTS_PORT")
    assert.include(refused.message, taken)
  })
)
