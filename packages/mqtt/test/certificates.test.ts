import {
  CertificateAuthorities,
  Certificates,
  ConnectRefusals,
  defaultProjectId,
  type Device,
  type DeviceCloud,
  Devices,
  type IssuedCertificate,
  X509
} from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, FactoryAuthority, Fixtures, TestKeyRing } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, it as test, layer } from "@effect/vitest"
import { type Context, Effect, Exit, Layer } from "effect"
import { generateKeyPairSync } from "node:crypto"
import { connect as connectTls, type TLSSocket } from "node:tls"
import { generate } from "mqtt-packet"
import { newDatabase, storages } from "../../../vitest.storages.ts"

const { connack, connect } = MqttDevice

const accepted = 0
const badCredentials = 4
const notAuthorized = 5

const createProduct = Fixtures.createProduct({ authType: "certificate" })
const createDevice = Effect.flatMap(createProduct, Fixtures.createDevice)

const add = ({ deviceId }: Pick<Device, "deviceId">, draft: Parameters<Certificates["Service"]["add"]>[2] = {}) =>
  Certificates.use((certificates) => certificates.add(defaultProjectId, deviceId, draft))

const revoke = ({ deviceId }: Device, { certificate: { serial } }: IssuedCertificate) =>
  Certificates.use((certificates) => certificates.revoke(defaultProjectId, deviceId, serial))

/** Connects with a certificate, without a user name and a password. */
const withCertificate = (
  { certificate, privateKey }: { readonly certificate: string; readonly privateKey: string },
  options: MqttDevice.ConnectOptions["options"] = {}
) => ({
  over: "tls" as const,
  extension: "",
  options: { cert: certificate, key: privateKey, username: undefined!, password: undefined!, ...options }
})

const issued = ({ certificate: { certificate }, privateKey }: IssuedCertificate) => ({
  certificate,
  privateKey: privateKey!
})

/** Registers the authority of a factory, and shows that the project has its key. */
const registerFactory = Effect.gen(function*() {
  const authorities = yield* CertificateAuthorities
  const x509 = yield* X509
  const { certificate, privateKey } = FactoryAuthority
  const { authorityId, verificationCode } = yield* authorities.register(defaultProjectId, {
    name: "Factory",
    certificate
  })
  const { publicKey } = yield* x509.makeKey
  const proof = yield* x509.issue(publicKey, {
    commonName: verificationCode,
    notBefore: Date.UTC(2020, 0),
    notAfter: Date.UTC(2119, 0)
  }, { certificate, privateKey })
  yield* authorities.verify(defaultProjectId, authorityId, { certificate: proof })
  return authorityId
})

const reasons = ({ deviceId }: Device) =>
  Effect.map(
    ConnectRefusals.use((refusals) => refusals.ofDevice(defaultProjectId, deviceId)),
    (all) => all.map(({ reason }) => reason)
  )

for (const [name, storage] of storages) {
  layer(MqttTestServer.layer(storage), { excludeTestServices: true })(`client certificates on ${name}`, (it) => {
    it.effect("a device connects with a certificate of the cloud, without a password, and works as any other", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const connected = yield* connect(device, withCertificate(issued(yield* add(device))))
        const reply = yield* connected.request(connected.topic("thing/event/property/post"), { power: 1 })
        assert.strictEqual(reply.code, 200)
        // It may also say who it is.
        const named = { username: `${device.deviceName}&${device.productKey}`, password: "anything" }
        assert.strictEqual(yield* connack(device, withCertificate(issued(yield* add(device)), named)), accepted)
      }))

    it.effect("a certificate for the key of a request needs no private key of the cloud", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const { certificate: { certificate, serial, subject }, privateKey } = yield* add(device, {
          csr: FactoryAuthority.request
        })
        assert.isUndefined(privateKey)
        assert.strictEqual(subject, `CN=${device.productKey}/${device.deviceName}`)
        assert.match(serial, /^[0-9a-f]{32}$/)
        const key = FactoryAuthority.two.privateKey
        assert.strictEqual(yield* connack(device, withCertificate({ certificate, privateKey: key })), accepted)
      }))

    it.effect("a device of such a product is refused without its certificate, and its refusals say why", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        yield* add(device)
        // Its signature is right.
        for (const over of ["tcp", "tls"] as const) {
          assert.strictEqual(yield* connack(device, { over }), badCredentials)
        }
        yield* eventually(reasons(device), {
          until: (all) => all.includes("the device needs its client certificate")
        })
      }))

    it.effect("a certificate of another device, of nobody, or of another authority admits nobody", () =>
      Effect.gen(function*() {
        const [device, other] = [yield* createDevice, yield* createDevice]
        const certificate = issued(yield* add(other))
        const named = { username: `${device.deviceName}&${device.productKey}` }
        assert.strictEqual(yield* connack(device, withCertificate(certificate, named)), badCredentials)
        yield* eventually(reasons(other), { until: (all) => all.includes("the certificate belongs to another device") })

        const x509 = yield* X509
        const { publicKey, privateKey } = yield* x509.makeKey
        const validity = { notBefore: Date.UTC(2020, 0), notAfter: Date.UTC(2100, 0) }
        const commonName = `${device.productKey}/${device.deviceName}`
        const forger = yield* x509.makeAuthority({ commonName: `Device Cloud ${defaultProjectId}`, ...validity })
        const forged = yield* x509.issue(publicKey, { commonName, ...validity }, forger)
        assert.strictEqual(
          yield* connack(device, withCertificate({ certificate: forged, privateKey })),
          badCredentials
        )
      }))

    it.effect("a certificate without its key is of no use", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const { certificate } = issued(yield* add(device))
        const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
        const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString()
        const attempt = yield* Effect.exit(
          Effect.suspend(() => connack(device, withCertificate({ certificate, privateKey: pem })))
        )
        assert.notDeepEqual(attempt, Exit.succeed(accepted))
      }))

    it.effect("a device that signs needs no certificate, and may present any", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        assert.strictEqual(yield* connack(device, { over: "tls" }), accepted)
        const { certificate: cert, privateKey: key } = FactoryAuthority.two
        assert.strictEqual(yield* connack(device, { over: "tls", options: { cert, key } }), accepted)
        assert.strictEqual(
          yield* connack(device, { over: "tls", password: "0".repeat(40), options: { cert, key } }),
          badCredentials
        )
      }))

    it.effect("revoking ends the connection that was made with the certificate, and no other", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const [first, second] = [yield* add(device), yield* add(device)]
        const connected = yield* connect(device, withCertificate(issued(second)))
        yield* revoke(device, first)
        assert.strictEqual((yield* connected.request(connected.topic("thing/event/property/post"), {})).code, 200)
        yield* revoke(device, second)
        yield* Effect.timeout(connected.closed, "1 second")
        for (const revoked of [first, second]) {
          assert.strictEqual(yield* connack(device, withCertificate(issued(revoked))), badCredentials)
        }
        yield* eventually(reasons(device), { until: (all) => all.includes("the certificate is revoked") })
        assert.strictEqual(yield* connack(device, withCertificate(issued(yield* add(device)))), accepted)
      }))

    it.effect("a revoked certificate does not come back with a resumed TLS session", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const certificate = yield* add(device)
        const { certificate: cert, privateKey: key } = issued(certificate)
        const { tls } = yield* MqttTestServer
        const port = Number(new URL(tls.url).port)
        /** Connects with a session of before; returns the CONNACK code, and the session. */
        const attempt = (session?: Buffer) =>
          Effect.callback<{ readonly code: number; readonly isReused: boolean; readonly session: Buffer | undefined }>(
            (resume) => {
              let latest: Buffer | undefined
              const socket: TLSSocket = connectTls(
                { port, host: "localhost", ca: tls.ca!, cert, key, ...session === undefined ? {} : { session } },
                () => {
                  socket.write(generate({
                    cmd: "connect",
                    protocolId: "MQTT",
                    protocolVersion: 4,
                    clean: true,
                    clientId: "c",
                    keepalive: 0
                  }))
                }
              )
              socket.on("session", (ticket: Buffer) => (latest = ticket))
              socket.on("error", () => {})
              socket.on("data", (bytes: Buffer) => {
                resume(Effect.succeed({ code: bytes[3]!, isReused: socket.isSessionReused(), session: latest }))
                socket.destroy()
              })
            }
          )
        const first = yield* attempt()
        assert.strictEqual(first.code, accepted)
        const second = yield* attempt(first.session)
        assert.deepInclude(second, { code: accepted, isReused: true })
        yield* revoke(device, certificate)
        assert.deepInclude(yield* attempt(second.session ?? first.session), { code: badCredentials, isReused: true })
      }))

    it.effect("an overlap ends the earlier certificates in time, and no connection", () =>
      Effect.gen(function*() {
        const device = yield* createDevice
        const [first, second] = [yield* add(device), yield* add(device, { overlap: 3600 })]
        for (const certificate of [first, second]) {
          assert.strictEqual(yield* connack(device, withCertificate(issued(certificate))), accepted)
        }
        const connected = yield* connect(device, withCertificate(issued(first)))
        const third = yield* add(device, { overlap: 0 })
        for (const certificate of [first, second]) {
          assert.strictEqual(yield* connack(device, withCertificate(issued(certificate))), badCredentials)
        }
        assert.strictEqual((yield* connected.request(connected.topic("thing/event/property/post"), {})).code, 200)
        assert.strictEqual(yield* connack(device, withCertificate(issued(third))), accepted)
      }))

    it.effect("a disabled or deleted device has no use for its certificate", () =>
      Effect.gen(function*() {
        const devices = yield* Devices
        const device = yield* createDevice
        const certificate = issued(yield* add(device))
        yield* devices.disable(defaultProjectId, device.deviceId)
        assert.strictEqual(yield* connack(device, withCertificate(certificate)), notAuthorized)
        yield* eventually(reasons(device), { until: (all) => all.includes("device disabled") })
        yield* devices.enable(defaultProjectId, device.deviceId)
        assert.strictEqual(yield* connack(device, withCertificate(certificate)), accepted)
        yield* devices.remove(defaultProjectId, device.deviceId)
        assert.strictEqual(yield* connack(device, withCertificate(certificate)), badCredentials)
      }))

    it.effect("certificates of a verified authority count, those on its revocation list no more", () =>
      Effect.gen(function*() {
        const authorities = yield* CertificateAuthorities
        const authorityId = yield* registerFactory
        const { emptyList, listWithOne, one, two } = FactoryAuthority
        const [first, second] = [yield* createDevice, yield* createDevice]
        yield* add(first, { certificate: one.certificate })
        yield* add(second, { certificate: two.certificate })
        const [ended, stays] = [
          yield* connect(first, withCertificate(one)),
          yield* connect(second, withCertificate(two))
        ]
        yield* authorities.putRevocationList(defaultProjectId, authorityId, { crl: emptyList })
        yield* authorities.putRevocationList(defaultProjectId, authorityId, { crl: listWithOne })
        yield* Effect.timeout(ended.closed, "1 second")
        assert.strictEqual(yield* connack(first, withCertificate(one)), badCredentials)
        assert.strictEqual((yield* stays.request(stays.topic("thing/event/property/post"), {})).code, 200)
        const older = yield* Effect.flip(
          authorities.putRevocationList(defaultProjectId, authorityId, { crl: emptyList })
        )
        assert.match(older.message, /^crl: Expected a list that was not issued before/)
        // With the authority go its certificates.
        yield* authorities.remove(defaultProjectId, authorityId)
        yield* Effect.timeout(stays.closed, "1 second")
        assert.strictEqual(yield* connack(second, withCertificate(two)), badCredentials)
      }))
  })
}

test.live("a certificate that one node revokes ends its connection at another", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const node = Layer.build(
      Layer.fresh(MqttTestServer.layer(StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer))))
    )
    const [first, second] = [yield* node, yield* node]
    const on = <A, E, R>(
      services: Context.Context<MqttTestServer | DeviceCloud.DeviceCloud>,
      effect: Effect.Effect<A, E, R>
    ) => Effect.provideContext(effect, services)
    // A node hears the others some time after its start.
    const heard = Effect.gen(function*() {
      const device = yield* on(first, createDevice)
      const certificate = yield* on(first, add(device))
      const connected = yield* on(second, connect(device, withCertificate(issued(certificate))))
      yield* on(first, revoke(device, certificate))
      yield* Effect.timeout(connected.closed, "1 second")
      assert.strictEqual(yield* on(second, connack(device, withCertificate(issued(certificate)))), badCredentials)
    })
    yield* eventually(Effect.timeout(Effect.scoped(heard), "3 seconds"))
  }).pipe(Effect.scoped))
