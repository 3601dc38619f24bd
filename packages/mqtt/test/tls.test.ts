import { DevelopmentCertificate, MqttServer, type TlsOptions } from "@device-cloud/mqtt"
import { CertificateFiles } from "@device-cloud/mqtt"
import { DeviceCloud } from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { eventually } from "@device-cloud/testing"
import { assert, it } from "@effect/vitest"
import { Cause, Clock, Context, Effect, Layer, Logger, References, Stream } from "effect"
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls"
import { makeCertificates } from "../src/CertificateMaking.ts"

const directory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-renewal-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true }))
)

const makeCertificate = Effect.flatMap(directory, DevelopmentCertificate.loadOrMake)

/** Starts a broker. */
const broker = (options: Omit<Parameters<typeof MqttServer.layer>[0], "host">) =>
  Effect.map(
    Layer.build(
      MqttServer.layer({ host: "127.0.0.1", ...options }).pipe(
        Layer.provide(DeviceCloud.layer),
        Layer.provide(StorageMemory.layer),
        Layer.provide(PlatformNode.layer)
      )
    ),
    Context.get(MqttServer)
  )

/** Starts a broker; returns its port. */
const serve = Effect.fnUntraced(function*(tls: Omit<TlsOptions, "port">) {
  const { mqtts } = yield* broker({ tls: { port: 0, ...tls } })
  return Number(new URL(mqtts!).port)
})

/** Shakes hands; undefined: the broker refused. */
const shakeHands = (port: number, options: ConnectionOptions) =>
  Effect.acquireRelease(
    Effect.callback<TLSSocket | undefined>((resume) => {
      const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...options }, () =>
        resume(Effect.succeed(socket)))
      socket.on("error", () =>
        resume(Effect.undefined))
    }),
    (socket) => Effect.sync(() => socket?.destroy())
  )

it.live("speaks TLS 1.3, and TLS 1.2 only with forward secrecy and authenticated encryption", () =>
  Effect.gen(function*() {
    const port = yield* serve(yield* makeCertificate)
    const with12 = (ciphers: string) => shakeHands(port, { maxVersion: "TLSv1.2", ciphers })
    assert.strictEqual((yield* shakeHands(port, {}))?.getProtocol(), "TLSv1.3")
    for (const ciphers of ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"]) {
      assert.strictEqual((yield* with12(ciphers))?.getCipher().name, ciphers)
    }
    for (const ciphers of ["AES128-GCM-SHA256", "AES256-SHA", "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384"]) {
      assert.isUndefined(yield* with12(ciphers), ciphers)
    }
  }))

it.live("an application may let older devices in", () =>
  Effect.gen(function*() {
    const ciphers = "ECDHE-ECDSA-AES128-SHA"
    const port = yield* serve({ ...yield* makeCertificate, ciphers })
    assert.isDefined(yield* shakeHands(port, { maxVersion: "TLSv1.2", ciphers }))
  }))

it.live("a renewed certificate counts for new connections, a broken one does not, and connections stay", () => {
  const said: Array<string> = []
  const logger = Logger.make(({ fiber, message }) => {
    said.push(`${fiber.getRef(References.CurrentLogAnnotations)["port"]}: ${message}`)
  })
  return Effect.gen(function*() {
    const path = yield* directory
    const files = { certificate: join(path, "certificate.pem"), key: join(path, "key.pem") }
    const write = ({ certificate, key }: { readonly certificate: string; readonly key: string }) =>
      Effect.promise(async () => {
        await writeFile(files.key, key)
        await writeFile(files.certificate, certificate)
      })
    const [first, second] = [yield* makeCertificate, yield* makeCertificate]
    yield* write(first)
    const current = yield* CertificateFiles.load(files)
    const port = yield* serve({ ...current, renewals: CertificateFiles.renewals(files, current, "10 millis") })
    const serial = Effect.map(
      Effect.scoped(Effect.map(shakeHands(port, {}), (socket) => socket?.getPeerCertificate().serialNumber)),
      (number) => number ?? "refused"
    )
    const before = yield* serial
    const connected = yield* shakeHands(port, {})
    // Of another certificate.
    yield* write({ ...first, key: second.key })
    assert.strictEqual(yield* serial, before)
    yield* write({ certificate: "no certificate", key: second.key })
    assert.strictEqual(yield* serial, before)
    // As while the file is being written.
    yield* write({ certificate: second.certificate, key: "" })
    yield* Effect.sleep("50 millis")
    assert.strictEqual(yield* serial, before)
    yield* write(second)
    yield* eventually(serial, { until: (now) => now !== before && now !== "refused" })
    assert.isFalse(connected!.destroyed)
    // A server with several ports says it once for each.
    yield* eventually(Effect.sync(() => said.at(-1)), {
      until: (last) => last === `${port}: The TLS certificate was renewed`
    })
  }).pipe(Effect.provide(Logger.layer([logger])))
})

it.live("the log says once that a certificate is out of its time, and once that a file cannot be read", () =>
  Effect.gen(function*() {
    const path = yield* directory
    const key = join(path, "key.pem")
    let looks = 0
    const files = {
      certificate: join(path, "certificate.pem"),
      get key() {
        looks++
        return key
      }
    }
    const lines: Array<string> = []
    const logger = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
    /** What several looks at the files have written. */
    const said = Effect.suspend(() => {
      const goal = looks + 4
      return Effect.map(
        eventually(Effect.sync(() => looks), { until: (now) => now >= goal }),
        () => lines.splice(0).join("; ")
      )
    })
    const now = yield* Clock.currentTimeMillis
    const certificateOf = (days: number) => makeCertificates(now + days * 86_400_000)
    /** As a whole. */
    const write = (file: string, text: string) =>
      Effect.promise(() => writeFile(`${file}.new`, text).then(() => rename(`${file}.new`, file)))
    const [expired, early] = [certificateOf(-2000), certificateOf(2)]
    yield* write(files.certificate, expired.certificate)
    yield* write(key, expired.key)
    yield* CertificateFiles.renewals(files, expired, "1 millis").pipe(
      Stream.runDrain,
      Effect.provide(logger),
      Effect.forkScoped
    )
    assert.match(yield* said, /^The certificate in \S+certificate.pem has expired, at \S+: clients refuse it$/)
    assert.strictEqual(yield* said, "")
    yield* Effect.promise(() => rm(key))
    assert.match(yield* said, /^The certificate is not renewed: \S+key.pem cannot be read \(.*ENOENT[^;]*$/)
    yield* write(files.certificate, early.certificate)
    yield* write(key, early.key)
    assert.match(yield* said, /^The certificate in \S+certificate.pem counts from \S+ on: clients refuse it$/)
  }))

it.live("a port that is none is a failure that names it", () =>
  Effect.gen(function*() {
    const certificate = yield* makeCertificate
    for (const port of [-1, 1.5, NaN, 70_000]) {
      for (const how of [{ tcp: { port } }, { tls: { port, ...certificate } }]) {
        const failed = yield* Effect.flip(broker(how))
        assert.deepInclude(failed, { _tag: "ListenError" })
        assert.include(failed.message, `cannot listen on 127.0.0.1, port ${port} `)
      }
    }
  }))

it.live.each([
  ["host", { host: undefined, tcp: { port: 0 } }],
  ["tcp.port", { tcp: 1883 }],
  ["tls.port", { tls: { certificate: "-----BEGIN", key: "-----BEGIN" } }],
  ["tls.certificate", { tls: { port: 0, cert: "-----BEGIN", key: "-----BEGIN" } }],
  ["tls.key", { tls: { port: 0, certificate: "-----BEGIN" } }],
  ["limits.connections", { tcp: { port: 0 }, limits: { connections: "many" } }],
  ["limits.unsentBytes", { tcp: { port: 0 }, limits: { unsentBytes: NaN } }]
])(
  "%s that is none is refused by name, which a program without types may give",
  ([name, options]) =>
    Effect.gen(function*() {
      const error = Cause.squash(yield* Effect.flip(Effect.sandbox(broker(options as never))))
      assert.instanceOf(error, TypeError)
      assert.isTrue((error as TypeError).message.startsWith(`${name}: expected `), String(error))
    })
)
