import { DevelopmentCertificate } from "@device-cloud/mqtt"
import { eventually } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Logger, Queue, References, Stream } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { createServer, type ServerResponse } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect as connectTcp } from "node:net"
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls"
import * as SecureHttp from "../src/SecureHttp.ts"

const makeCertificate = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-https-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true }))
).pipe(Effect.flatMap(DevelopmentCertificate.loadOrMake))

/** Serves HTTPS; returns the port. */
const serve = (
  options: Pick<SecureHttp.Options, "certificate" | "key" | "renewals">,
  http = createServer((_, response) => void response.end("<answer>")),
  server: SecureHttp.Options["server"] = {}
) =>
  Effect.map(
    SecureHttp.listen(http, {
      ...options,
      host: "127.0.0.1",
      port: 0,
      clientCertificates: false,
      connections: 100,
      server
    }),
    (url) => Number(new URL(url).port)
  )

/** Shakes hands; undefined: the server refused. */
const shakeHands = (port: number, options: ConnectionOptions = {}) =>
  Effect.acquireRelease(
    Effect.callback<TLSSocket | undefined>((resume) => {
      const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...options }, () =>
        resume(Effect.succeed(socket)))
      socket.on("error", () =>
        resume(Effect.undefined))
    }),
    (socket) => Effect.sync(() => socket?.destroy())
  )

it.live("HTTPS speaks TLS 1.3, and TLS 1.2 only with forward secrecy and authenticated encryption", () =>
  Effect.gen(function*() {
    const port = yield* serve(yield* makeCertificate)
    assert.strictEqual((yield* shakeHands(port))?.getProtocol(), "TLSv1.3")
    const with12 = (ciphers: string) => shakeHands(port, { maxVersion: "TLSv1.2", ciphers })
    const strong = "ECDHE-ECDSA-AES128-GCM-SHA256"
    assert.strictEqual((yield* with12(strong))?.getCipher().name, strong)
    for (const ciphers of ["AES128-GCM-SHA256", "AES256-SHA", "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384"]) {
      assert.isUndefined(yield* with12(ciphers), ciphers)
    }
  }))

it.live("a renewed certificate counts for new connections over HTTPS, a broken one does not, and connections stay", () => {
  const said: Array<string> = []
  const logger = Logger.make(({ fiber, message }) => {
    said.push(`${fiber.getRef(References.CurrentLogAnnotations)["port"]}: ${message}`)
  })
  return Effect.gen(function*() {
    const [first, second] = [yield* makeCertificate, yield* makeCertificate]
    const renewed = yield* Queue.unbounded<DevelopmentCertificate.ServerCertificate>()
    const port = yield* serve({ ...first, renewals: Stream.fromQueue(renewed) })
    const serial = Effect.map(
      Effect.scoped(Effect.map(shakeHands(port), (socket) => socket?.getPeerCertificate().serialNumber)),
      (number) => number ?? "refused"
    )
    const before = yield* serial
    const connected = yield* shakeHands(port)
    // With the key of another certificate.
    yield* Queue.offer(renewed, { ...first, key: second.key })
    assert.strictEqual(yield* serial, before)
    yield* Queue.offer(renewed, second)
    yield* eventually(serial, { until: (now) => now !== before && now !== "refused" })
    const answer = Effect.callback<string>((resume) => {
      connected!.once("data", (chunk) => resume(Effect.succeed(String(chunk))))
      connected!.write("GET / HTTP/1.1\r\nhost: h\r\n\r\n")
    })
    assert.include(yield* answer, "<answer>")
    yield* eventually(Effect.sync(() => said.at(-1)), {
      until: (last) => last === `${port}: The TLS certificate was renewed`
    })
  }).pipe(Effect.provide(Logger.layer([logger])))
})

it.live("clients that come at once are all answered over HTTPS, also beside those that say half a hello", () =>
  Effect.gen(function*() {
    const port = yield* serve(yield* makeCertificate)
    const halves = yield* Effect.forEach([1, 2, 3], () =>
      Effect.acquireRelease(
        Effect.sync(() => connectTcp(port, "127.0.0.1").on("error", () => {})),
        (socket) => Effect.sync(() => socket.destroy())
      ))
    for (const socket of halves) socket.write(Buffer.from([22, 3, 1, 2, 0, 1]))
    const answers = yield* Effect.forEach(
      Array.from({ length: 60 }),
      () =>
        Effect.flatMap(shakeHands(port), (socket) =>
          Effect.callback<string>((resume) => {
            socket!.once("data", (chunk) => resume(Effect.succeed(String(chunk))))
            socket!.write("GET / HTTP/1.1\r\nhost: h\r\n\r\n")
          })),
      { concurrency: "unbounded" }
    )
    assert.lengthOf(answers.filter((answer) => answer.includes("<answer>")), 60)
    assert.isTrue(halves.every(({ destroyed }) => !destroyed))
  }))

it.live("a client that does not send the whole head of its request in time is refused over HTTPS", () =>
  Effect.gen(function*() {
    const http = createServer().on("clientError", ({ code }: NodeJS.ErrnoException, socket) => socket.end(code))
    const socket = yield* shakeHands(
      yield* serve(yield* makeCertificate, http, { headersTimeout: 100, connectionsCheckingInterval: 10 })
    )
    const answer = Effect.callback<string>((resume) => {
      socket!.once("data", (chunk) => resume(Effect.succeed(String(chunk))))
      socket!.write("GET / HTTP/1.1\r\nhost: ")
    })
    assert.strictEqual(yield* answer, "ERR_HTTP_REQUEST_TIMEOUT")
  }))

it.live("the plain server is not closed before a request over TLS has its response", () =>
  Effect.gen(function*() {
    const requests = yield* Queue.unbounded<ServerResponse>()
    const http = createServer((_, response) => void Queue.offerUnsafe(requests, response))
    yield* Effect.callback<void>((resume) => void http.listen(0, "127.0.0.1", () => resume(Effect.void)))
    const socket = yield* shakeHands(yield* serve(yield* makeCertificate, http))
    socket!.write("GET / HTTP/1.1\r\nhost: h\r\n\r\n")
    const response = yield* Queue.take(requests)
    const order: Array<string> = []
    const closed = yield* Effect.forkChild(
      Effect.callback<void>((resume) => void http.close(() => resume(Effect.sync(() => void order.push("closed"))))),
      { startImmediately: true }
    )
    yield* Effect.sleep("50 millis")
    order.push("response")
    response.end("<answer>")
    yield* Fiber.join(closed)
    assert.deepStrictEqual(order, ["response", "closed"])
  }))
