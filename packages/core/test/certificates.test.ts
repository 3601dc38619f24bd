import {
  CertificateAuthorities,
  Certificates,
  CertificateStore,
  defaultProjectId,
  type Device,
  DeviceAuthenticator,
  type DeviceCertificate,
  DeviceCloud,
  Devices,
  DeviceSessions,
  type DisconnectReason,
  NodeBus,
  NoticeListeners,
  X509
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures, TestCloud } from "@device-cloud/testing"
import { assert, it, layer } from "@effect/vitest"
import { Clock, Deferred, Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { refusalOf, statusOf } from "../src/certificate/Certificate.ts"

const createDevice = Effect.flatMap(Fixtures.createProduct({ authType: "certificate" }), Fixtures.createDevice)

const add = ({ deviceId }: Device, draft: Parameters<Certificates["Service"]["add"]>[2] = {}) =>
  Effect.map(
    Certificates.use((certificates) => certificates.add(defaultProjectId, deviceId, draft)),
    ({ certificate }) => certificate
  )

const authenticate = ({ fingerprint }: DeviceCertificate, device?: Device) =>
  DeviceAuthenticator.use((authenticator) => authenticator.authenticateCertificate({ fingerprint, device }))

/** Attaches a connection that was made with the certificate. Waits for why the cloud ends it. */
const attach = Effect.fnUntraced(function*(certificate: DeviceCertificate) {
  const device = Option.getOrThrow(yield* authenticate(certificate))
  return {
    attached: Effect.gen(function*() {
      const closed = yield* Deferred.make<DisconnectReason>()
      yield* (yield* DeviceSessions).attach({
        device,
        ip: "127.0.0.1",
        certificate: certificate.fingerprint,
        deliver: () => Effect.void,
        backlog: () => undefined,
        close: (reason) => Effect.asVoid(Deferred.succeed(closed, reason))
      })
      return { closed: Deferred.await(closed) }
    })
  }
})

/** Registers and verifies an authority of somebody else, valid for a minute. Returns a certificate that it has issued, for an hour. */
const issuedElsewhere = Effect.gen(function*() {
  const authorities = yield* CertificateAuthorities
  const x509 = yield* X509
  const notBefore = yield* Clock.currentTimeMillis
  const authority = yield* x509.makeAuthority({ commonName: "Factory", notBefore, notAfter: notBefore + 60_000 })
  const issue = Effect.fnUntraced(function*(commonName: string) {
    const { publicKey } = yield* x509.makeKey
    return yield* x509.issue(publicKey, { commonName, notBefore, notAfter: notBefore + 3_600_000 }, authority)
  })
  const { authorityId, verificationCode } = yield* authorities.register(defaultProjectId, {
    name: "Factory",
    certificate: authority.certificate
  })
  yield* authorities.verify(defaultProjectId, authorityId, { certificate: yield* issue(verificationCode) })
  return yield* issue("unit")
}).pipe(Effect.provide(PlatformNode.layer))

it("a certificate counts from its beginning to the first of its ends, unless it is revoked", () => {
  const certificate = {
    notBefore: 100,
    notAfter: 200,
    endsAt: null,
    revokedAt: null
  } as unknown as DeviceCertificate
  const ended = { ...certificate, endsAt: 150 }
  const revoked = { ...certificate, revokedAt: 120 }
  const cases: ReadonlyArray<readonly [DeviceCertificate, number, string | undefined, string]> = [
    [certificate, 99, "the certificate is not valid yet", "active"],
    [certificate, 100, undefined, "active"],
    [certificate, 199, undefined, "active"],
    [certificate, 200, "the certificate has expired", "expired"],
    [ended, 149, undefined, "active"],
    [ended, 150, "the certificate was replaced, or its authority has expired", "expired"],
    [{ ...certificate, endsAt: 300 }, 200, "the certificate has expired", "expired"],
    [revoked, 110, "the certificate is revoked", "revoked"],
    [revoked, 250, "the certificate is revoked", "revoked"]
  ]
  for (const [each, now, refusal, status] of cases) {
    assert.deepStrictEqual([refusalOf(each, now), statusOf(each, now)], [refusal, status])
  }
})

layer(TestCloud.layer, { excludeTestServices: true })("client certificates", (it) => {
  it.effect("a replaced certificate counts until its overlap is over, and then makes room for another", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const first = yield* add(device)
      assert.isTrue(Option.isSome(yield* authenticate(first)))
      const second = yield* add(device, { overlap: 5 })
      assert.isTrue(Option.isSome(yield* authenticate(first)))
      yield* TestClock.adjust("5 seconds")
      const refused = yield* Effect.flip(authenticate(first))
      assert.deepInclude(refused, {
        _tag: "CertificateRefused",
        deviceName: device.deviceName,
        reason: "the certificate was replaced, or its authority has expired"
      })
      const third = yield* add(device)
      assert.deepStrictEqual(
        yield* (yield* Certificates).list(defaultProjectId, device.deviceId),
        [third, second]
      )
    }))

  it.effect("however often refused certificates come, they shut nobody out", () =>
    Effect.gen(function*() {
      const [device, other] = [yield* createDevice, yield* createDevice]
      const certificate = yield* add(device)
      for (let i = 0; i < 100; i++) {
        assert.strictEqual((yield* Effect.flip(authenticate(certificate, other)))._tag, "CertificateRefused")
      }
      assert.isTrue(Option.isSome(yield* authenticate(certificate, device)))
    }))

  it.effect("a certificate of a removed device belongs to nobody, at once", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const certificate = yield* add(device)
      assert.isTrue(Option.isSome(yield* authenticate(certificate)))
      yield* (yield* Devices).remove(defaultProjectId, device.deviceId)
      assert.isTrue(Option.isNone(yield* authenticate(certificate)))
    }))

  it.effect("a certificate that another device had admits the one that it is given to, at once", () =>
    Effect.gen(function*() {
      const certificate = yield* issuedElsewhere
      const [former, device] = [yield* createDevice, yield* createDevice]
      assert.isTrue(Option.isSome(yield* authenticate(yield* add(former, { certificate }))))
      yield* (yield* Devices).remove(defaultProjectId, former.deviceId)
      const admitted = yield* authenticate(yield* add(device, { certificate }))
      assert.strictEqual(Option.getOrThrow(admitted).deviceId, device.deviceId)
    }))

  it.effect("a certificate whose authority has expired takes the place of no other", () =>
    Effect.gen(function*() {
      const certificate = yield* issuedElsewhere
      const device = yield* createDevice
      const own = yield* add(device)
      yield* TestClock.adjust("1 minute")
      const refused = yield* Effect.flip(add(device, { certificate, overlap: 0 }))
      assert.include(refused.message, "certificate: Expected a certificate of an authority")
      assert.isTrue(Option.isSome(yield* authenticate(own)))
    }))

  it.effect("a certificate that is revoked between its check and the session admits nobody", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const certificate = yield* add(device)
      const { attached } = yield* attach(certificate)
      yield* (yield* Certificates).revoke(defaultProjectId, device.deviceId, certificate.serial)
      assert.strictEqual(yield* (yield* attached).closed, "revoked")
    }))
})

for (
  const [name, after] of ([
    [
      "a node that has missed notices finds what was revoked meanwhile",
      (listeners) => Effect.sync(() => listeners.hear("missed"))
    ],
    ["a node finds within two minutes what another one revoked before it crashed", () => TestClock.adjust("2 minutes")]
  ] satisfies ReadonlyArray<readonly [string, (listeners: NoticeListeners) => Effect.Effect<unknown>]>)
) {
  it.effect(name, () =>
    Effect.gen(function*() {
      const listeners = new NoticeListeners()
      const bus = Layer.succeed(
        NodeBus,
        NodeBus.of({
          nodeId: "node",
          publish: (sent) => Effect.sync(() => sent.forEach((notice) => listeners.hear(notice))),
          listen: listeners.listen
        })
      )
      const cloud = DeviceCloud.layer.pipe(
        Layer.provideMerge(bus.pipe(Layer.provideMerge(StorageMemory.layer))),
        Layer.provideMerge(PlatformNode.layer)
      )
      yield* Effect.gen(function*() {
        const [device, other] = [yield* createDevice, yield* createDevice]
        const [certificate, kept] = [yield* add(device), yield* add(other)]
        const { closed } = yield* (yield* attach(certificate)).attached
        const { closed: stays } = yield* (yield* attach(kept)).attached
        // Another node revokes it, and this one does not hear of it.
        yield* (yield* CertificateStore).revoke(device.deviceId, certificate.serial, 1)
        yield* after(listeners)
        assert.strictEqual(yield* closed, "revoked")
        assert.isTrue(Option.isNone(yield* Effect.timeoutOption(stays, 0)))
        assert.strictEqual((yield* Effect.flip(authenticate(certificate)))._tag, "CertificateRefused")
      }).pipe(Effect.provide(cloud))
    }))
}
