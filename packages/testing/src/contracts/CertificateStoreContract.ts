/**
 * The laws of `CertificateStore`.
 */
import {
  CertificateStore,
  type DeviceCertificate,
  type DeviceCloud,
  DeviceId,
  DeviceStore,
  type NewAuthority,
  type NewCertificate,
  ProjectId,
  ProjectStore,
  type RevokedSerial
} from "@device-cloud/core"
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Option } from "effect"
import { detached } from "./Detached.ts"
import { epoch, insertDevice, insertDevices, insertProject, newDevice, unique } from "./Samples.ts"

const day = 86_400_000

const newAuthority = (projectId: ProjectId, fields: Partial<NewAuthority> = {}): NewAuthority => ({
  authorityId: unique("authority"),
  projectId,
  kind: "registered",
  name: "Factory",
  state: "pending",
  verificationCode: unique("code"),
  certificate: "-----BEGIN CERTIFICATE-----",
  fingerprint: unique("authority-fingerprint"),
  subject: "CN=Factory",
  notBefore: epoch,
  notAfter: epoch + 3650 * day,
  createdAt: epoch,
  ...fields
})

const newCertificate = (
  deviceId: DeviceId,
  authorityId: string,
  fields: Partial<NewCertificate> = {}
): NewCertificate => ({
  fingerprint: unique("fingerprint"),
  serial: unique("5e"),
  deviceId,
  authorityId,
  subject: "CN=unit",
  certificate: "-----BEGIN CERTIFICATE-----",
  notBefore: epoch,
  notAfter: epoch + 365 * day,
  endsAt: null,
  createdAt: epoch,
  ...fields
})

const untouched = { othersEndAt: null, limit: 10 }
const registered = { privateKey: null, limit: 10 }

/** A device, and an authority of its project. */
const insertBoth = (fields: Partial<NewAuthority> = {}) =>
  Effect.gen(function*() {
    const { device, product } = yield* insertDevice
    const authority = newAuthority(product.projectId, fields)
    yield* (yield* CertificateStore).insertAuthority(authority, {
      privateKey: fields.kind === "own" ? "the key" : null,
      limit: 10
    })
    return { authority, device, product, deviceId: device.deviceId, authorityId: authority.authorityId }
  })

const stored = (certificate: NewCertificate): DeviceCertificate => ({ ...certificate, revokedAt: null })

export const suite = <E>(name: string, stores: Layer.Layer<DeviceCloud.Stores, E>): void => {
  layer(detached(stores), { excludeTestServices: true })(`CertificateStore on ${name}`, (it) => {
    it.effect("keeps the authorities of each project apart, and each certificate of an authority once", () =>
      Effect.gen(function*() {
        const store = yield* CertificateStore
        const [mine, other] = [yield* insertProject, yield* insertProject]
        const [first, second] = [newAuthority(mine.id), newAuthority(mine.id, { name: "Second" })]
        assert.strictEqual(yield* store.insertAuthority(first, registered), "inserted")
        assert.strictEqual(yield* store.insertAuthority(second, registered), "inserted")
        assert.strictEqual(
          yield* store.insertAuthority(newAuthority(ProjectId.make("missing")), registered),
          "no-project"
        )
        assert.strictEqual(
          yield* store.insertAuthority(newAuthority(mine.id, { fingerprint: first.fingerprint }), registered),
          "taken"
        )
        assert.strictEqual(
          yield* store.insertAuthority(newAuthority(other.id, { fingerprint: first.fingerprint }), registered),
          "inserted"
        )
        assert.strictEqual(
          yield* store.insertAuthority(newAuthority(mine.id), { privateKey: null, limit: 2 }),
          "full"
        )
        assert.strictEqual(
          yield* store.insertAuthority(newAuthority(mine.id, { fingerprint: first.fingerprint }), {
            privateKey: null,
            limit: 2
          }),
          "taken"
        )
        assert.deepStrictEqual(
          yield* store.authorities(mine.id),
          [first, second].map((authority) => ({ ...authority, revocationList: null }))
        )
        const { authorityId } = first
        assert.deepStrictEqual(
          Option.getOrThrow(yield* store.authority(mine.id, authorityId)),
          { ...first, revocationList: null }
        )
        assert.isTrue(Option.isNone(yield* store.authority(other.id, authorityId)))
        assert.isFalse(yield* store.activateAuthority(other.id, authorityId))
        assert.isFalse(yield* store.removeAuthority(other.id, authorityId))
        assert.strictEqual(
          yield* store.putRevocationList(other.id, authorityId, { issuedAt: epoch, nextAt: null, size: 0 }, []),
          "not-found"
        )
        assert.isTrue(yield* store.activateAuthority(mine.id, authorityId))
        assert.strictEqual(Option.getOrThrow(yield* store.authority(mine.id, authorityId)).state, "active")
        assert.isTrue(yield* store.removeAuthority(mine.id, authorityId))
        assert.isFalse(yield* store.removeAuthority(mine.id, authorityId))
        yield* (yield* ProjectStore).remove(mine.id)
        assert.deepStrictEqual(yield* store.authorities(mine.id), [])
      }))

    it.effect("a project has one authority of its own, with its key, also if several are stored at once", () =>
      Effect.gen(function*() {
        const store = yield* CertificateStore
        const { id } = yield* insertProject
        const others = [newAuthority(id), newAuthority(id)]
        assert.strictEqual(yield* store.insertAuthority(others[0]!, registered), "inserted")
        assert.isTrue(Option.isNone(yield* store.ownAuthority(id)))
        const drafts = Array.from({ length: 6 }, () => newAuthority(id, { kind: "own", state: "active" }))
        const outcomes = yield* Effect.forEach(
          drafts,
          (draft, i) => store.insertAuthority(draft, { privateKey: `key ${i}`, limit: 10 }),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(outcomes.toSorted(), ["inserted", ...Array.from({ length: 5 }, () => "taken")])
        const own = Option.getOrThrow(yield* store.ownAuthority(id))
        assert.isTrue(Option.isNone(yield* store.ownAuthority((yield* insertProject).id)))
        const inserted = outcomes.indexOf("inserted")
        assert.strictEqual(own.privateKey, `key ${inserted}`)
        // The key leaves the store beside the authority, never in it.
        const authority = { ...drafts[inserted]!, revocationList: null }
        assert.deepStrictEqual(own.authority, authority)
        // Registered ones stand beside it.
        assert.strictEqual(yield* store.insertAuthority(others[1]!, registered), "inserted")
        assert.deepStrictEqual(yield* store.authorities(id), [
          { ...others[0]!, revocationList: null },
          authority,
          { ...others[1]!, revocationList: null }
        ])
        assert.deepStrictEqual(
          Option.getOrThrow(yield* store.authority(id, authority.authorityId)),
          authority
        )
      }))

    it.effect("finds certificates by fingerprint with their devices, the newest first at a device", () =>
      Effect.gen(function*() {
        const store = yield* CertificateStore
        const { authorityId, device, deviceId } = yield* insertBoth()
        const [first, second] = [
          newCertificate(deviceId, authorityId),
          newCertificate(deviceId, authorityId, { endsAt: epoch + day })
        ]
        for (const certificate of [first, second]) {
          assert.strictEqual(yield* store.insert(certificate, untouched), "inserted")
        }
        const { deviceId: stranger } = yield* insertBoth()
        assert.strictEqual(yield* store.insert(newCertificate(stranger, authorityId), untouched), "inserted")
        assert.deepStrictEqual(yield* store.ofDevice(deviceId), [stored(second), stored(first)])
        const { deviceName, productKey } = device
        const fingerprints = ["missing", first.fingerprint, second.fingerprint, first.fingerprint]
        const found = yield* Effect.forEach(fingerprints, store.find, { concurrency: "unbounded" })
        assert.deepStrictEqual(
          found.map(Option.getOrNull),
          [null, ...[first, second, first].map((each) => ({ ...stored(each), productKey, deviceName }))]
        )
        assert.deepStrictEqual(yield* store.ofDevice(DeviceId.make("missing")), [])
      }))

    it.effect("a fingerprint belongs to one device, and a serial number to one certificate of a device", () =>
      Effect.gen(function*() {
        const store = yield* CertificateStore
        const { authorityId, deviceId } = yield* insertBoth()
        const foreign = yield* insertBoth()
        const certificate = newCertificate(deviceId, authorityId)
        assert.strictEqual(yield* store.insert(certificate, untouched), "inserted")
        const { fingerprint, serial } = certificate
        for (
          const other of [
            certificate,
            newCertificate(foreign.deviceId, foreign.authorityId, { fingerprint }),
            newCertificate(deviceId, authorityId, { serial })
          ]
        ) {
          assert.strictEqual(yield* store.insert(other, untouched), "taken")
        }
        assert.strictEqual(
          yield* store.insert(newCertificate(foreign.deviceId, foreign.authorityId, { serial }), untouched),
          "inserted"
        )
        assert.strictEqual(
          yield* store.insert(newCertificate(DeviceId.make("missing"), authorityId), untouched),
          "no-device"
        )
        assert.strictEqual(yield* store.insert(newCertificate(deviceId, "missing"), untouched), "no-authority")
      }))

    it.effect("a device has at most so many certificates, also if several are stored at once", () =>
      Effect.gen(function*() {
        const store = yield* CertificateStore
        const { authorityId, deviceId } = yield* insertBoth()
        const outcomes = yield* Effect.all(
          Array.from(
            { length: 8 },
            () => store.insert(newCertificate(deviceId, authorityId), { othersEndAt: null, limit: 3 })
          ),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(outcomes.filter((outcome) => outcome === "inserted").length, 3)
        assert.strictEqual(outcomes.filter((outcome) => outcome === "full").length, 5)
        // Those that have expired make room.
        const later = newCertificate(deviceId, authorityId, {
          createdAt: epoch + 366 * day,
          notAfter: epoch + 400 * day
        })
        assert.strictEqual(yield* store.insert(later, { othersEndAt: null, limit: 3 }), "inserted")
        assert.deepStrictEqual(yield* store.ofDevice(deviceId), [stored(later)])
      }))

    it.effect("revoked certificates that are kept count as others", () =>
      Effect.gen(function*() {
        const store = yield* CertificateStore
        const { authorityId, deviceId } = yield* insertBoth()
        const certificate = newCertificate(deviceId, authorityId)
        yield* store.insert(certificate, untouched)
        yield* store.revoke(deviceId, certificate.serial, epoch)
        assert.strictEqual(
          yield* store.insert(newCertificate(deviceId, authorityId), { othersEndAt: null, limit: 1 }),
          "full"
        )
      }))

    it.effect("a certificate that is refused ends no others, and one that is stored ends none of another device", () =>
      Effect.gen(function*() {
        const store = yield* CertificateStore
        const { authorityId, deviceId, product } = yield* insertBoth()
        const [other] = yield* insertDevices(product, [newDevice()])
        const [mine, theirs] = [newCertificate(deviceId, authorityId), newCertificate(other!.deviceId, authorityId)]
        yield* store.insert(mine, untouched)
        yield* store.insert(theirs, untouched)
        const ending = { othersEndAt: epoch + 1000, limit: 1 }
        const { fingerprint } = theirs
        for (
          const [certificate, outcome] of [
            [newCertificate(deviceId, authorityId, { fingerprint }), "taken"],
            [newCertificate(deviceId, authorityId, { serial: mine.serial }), "taken"],
            [newCertificate(deviceId, authorityId), "full"],
            [newCertificate(deviceId, "missing"), "no-authority"]
          ] as const
        ) {
          assert.strictEqual(yield* store.insert(certificate, ending), outcome)
        }
        assert.deepStrictEqual(yield* store.ofDevice(deviceId), [stored(mine)])
        const next = newCertificate(deviceId, authorityId)
        assert.strictEqual(yield* store.insert(next, { ...ending, limit: 2 }), "inserted")
        assert.deepStrictEqual(yield* store.ofDevice(deviceId), [
          stored(next),
          { ...stored(mine), endsAt: epoch + 1000 }
        ])
        assert.deepStrictEqual(yield* store.ofDevice(other!.deviceId), [stored(theirs)])
      }))

    it.effect("ends the others of the device in time, and none later than it would", () =>
      Effect.gen(function*() {
        const store = yield* CertificateStore
        const { authorityId, deviceId, product } = yield* insertBoth()
        const [other] = yield* insertDevices(product, [newDevice()])
        const theirs = newCertificate(other!.deviceId, authorityId, { endsAt: epoch + 1000 })
        const [first, second, later, third] = [
          newCertificate(deviceId, authorityId),
          newCertificate(deviceId, authorityId, { endsAt: epoch + 1000 }),
          newCertificate(deviceId, authorityId, { endsAt: epoch + 9000 }),
          newCertificate(deviceId, authorityId)
        ]
        for (const certificate of [first, second, later, theirs]) yield* store.insert(certificate, untouched)
        yield* store.insert(third, { othersEndAt: epoch + 5000, limit: 10 })
        assert.deepStrictEqual(
          (yield* store.ofDevice(deviceId)).map(({ endsAt }) => endsAt),
          [null, epoch + 5000, epoch + 1000, epoch + 5000]
        )
        const fourth = newCertificate(deviceId, authorityId, { createdAt: epoch + 5000 })
        yield* store.insert(fourth, untouched)
        assert.deepStrictEqual(yield* store.ofDevice(deviceId), [stored(fourth), stored(third)])
        assert.deepStrictEqual(yield* store.ofDevice(other!.deviceId), [stored(theirs)])
      }))

    it.effect("revokes once, and keeps what is revoked if somebody else could bring it back", () =>
      Effect.gen(function*() {
        const store = yield* CertificateStore
        for (const kind of ["registered", "own"] as const) {
          const { authorityId, deviceId } = yield* insertBoth({ kind })
          const certificate = newCertificate(deviceId, authorityId)
          yield* store.insert(certificate, untouched)
          const revoked = { ...certificate, revokedAt: epoch + 1 }
          for (const at of [epoch + 1, epoch + 2]) {
            assert.deepStrictEqual(
              Option.getOrThrow(yield* store.revoke(deviceId, certificate.serial, at)),
              revoked
            )
          }
          assert.deepStrictEqual(yield* store.ofDevice(deviceId), [revoked])
          assert.strictEqual(Option.getOrThrow(yield* store.find(certificate.fingerprint)).revokedAt, epoch + 1)
          assert.isTrue(Option.isNone(yield* store.revoke(deviceId, "missing", epoch)))
          const next = newCertificate(deviceId, authorityId)
          yield* store.insert(next, untouched)
          const kept = kind === "registered" ? [stored(next), revoked] : [stored(next)]
          assert.deepStrictEqual(yield* store.ofDevice(deviceId), kept)
          if (kind === "registered") assert.strictEqual(yield* store.insert(certificate, untouched), "taken")
          // One that has expired does not count, revoked or not.
          const { notAfter: createdAt } = certificate
          const last = newCertificate(deviceId, authorityId, { createdAt, notAfter: createdAt + day })
          assert.strictEqual(yield* store.insert(last, { othersEndAt: null, limit: 1 }), "inserted")
          assert.deepStrictEqual(yield* store.ofDevice(deviceId), [stored(last)])
        }
      }))

    it.effect("revokes at one device alone, whoever else has the serial number", () =>
      Effect.gen(function*() {
        const store = yield* CertificateStore
        const [one, other] = [yield* insertBoth(), yield* insertBoth()]
        const certificate = newCertificate(one.deviceId, one.authorityId)
        const { serial } = certificate
        const same = newCertificate(other.deviceId, other.authorityId, { serial })
        yield* store.insert(certificate, untouched)
        assert.isTrue(Option.isNone(yield* store.revoke(other.deviceId, serial, epoch + 1)))
        assert.deepStrictEqual(yield* store.ofDevice(one.deviceId), [stored(certificate)])
        yield* store.insert(same, untouched)
        yield* store.revoke(one.deviceId, serial, epoch + 1)
        assert.deepStrictEqual(yield* store.ofDevice(one.deviceId), [{ ...certificate, revokedAt: epoch + 1 }])
        assert.deepStrictEqual(yield* store.ofDevice(other.deviceId), [stored(same)])
        // So does the list of an authority: numbers of another authority are not its own.
        const list = { issuedAt: epoch, nextAt: null, size: 1 }
        yield* store.putRevocationList(one.product.projectId, one.authorityId, list, [{ serial, revokedAt: epoch }])
        assert.deepStrictEqual(yield* store.ofDevice(other.deviceId), [stored(same)])
        assert.isNull(Option.getOrThrow(yield* store.find(same.fingerprint)).revokedAt)
        assert.deepStrictEqual(
          yield* store.revoke(other.deviceId, serial, epoch + 2),
          Option.some({ ...same, revokedAt: epoch + 2 })
        )
      }))

    it.effect("what the list of an authority revokes is revoked while it is on the list", () =>
      Effect.gen(function*() {
        const store = yield* CertificateStore
        const { authorityId, deviceId, product: { projectId } } = yield* insertBoth()
        const [first, second] = [newCertificate(deviceId, authorityId), newCertificate(deviceId, authorityId)]
        yield* store.insert(first, untouched)
        yield* store.insert(second, untouched)
        const put = (issuedAt: number, serials: ReadonlyArray<string>) =>
          store.putRevocationList(
            projectId,
            authorityId,
            { issuedAt, nextAt: issuedAt + day, size: serials.length },
            serials.map((serial) => ({ serial, revokedAt: epoch + 7000 }))
          )
        const revokedAt = Effect.map(store.ofDevice(deviceId), (all) => all.map((each) => each.revokedAt))
        assert.strictEqual(yield* put(epoch + day, ["another", first.serial]), "stored")
        assert.deepStrictEqual(yield* revokedAt, [null, epoch + 7000])
        assert.strictEqual(Option.getOrThrow(yield* store.find(first.fingerprint)).revokedAt, epoch + 7000)
        assert.deepStrictEqual(
          Option.getOrThrow(yield* store.authority(projectId, authorityId)).revocationList,
          { issuedAt: epoch + day, nextAt: epoch + 2 * day, size: 2 }
        )
        assert.strictEqual(yield* put(epoch, []), "older")
        assert.deepStrictEqual(yield* revokedAt, [null, epoch + 7000])
        // One that is as old takes the place of the stored one, the numbers on that with it.
        assert.strictEqual(yield* put(epoch + day, [second.serial]), "stored")
        assert.deepStrictEqual(yield* revokedAt, [epoch + 7000, null])
        yield* store.activateAuthority(projectId, authorityId)
        assert.deepStrictEqual(
          Option.getOrThrow(yield* store.authority(projectId, authorityId)).revocationList,
          { issuedAt: epoch + day, nextAt: epoch + 2 * day, size: 1 }
        )
        assert.strictEqual(yield* put(epoch + 2 * day, []), "stored")
        assert.deepStrictEqual(yield* revokedAt, [null, null])
      }))

    it.effect("the list of an authority revokes what is stored after it, too, and its time stays", () =>
      Effect.gen(function*() {
        const store = yield* CertificateStore
        const { authorityId, deviceId, product: { projectId } } = yield* insertBoth()
        const certificate = newCertificate(deviceId, authorityId)
        const { fingerprint, serial } = certificate
        const put = (issuedAt: number, revoked: ReadonlyArray<RevokedSerial>) =>
          store.putRevocationList(projectId, authorityId, { issuedAt, nextAt: null, size: revoked.length }, revoked)
        yield* put(epoch, [{ serial, revokedAt: epoch - 7000 }])
        assert.strictEqual(yield* store.insert(certificate, untouched), "inserted")
        const revoked = { ...certificate, revokedAt: epoch - 7000 }
        assert.deepStrictEqual(yield* store.ofDevice(deviceId), [revoked])
        assert.isTrue(yield* store.activateAuthority(projectId, authorityId))
        assert.deepStrictEqual(yield* store.ofDevice(deviceId), [revoked])
        assert.strictEqual(Option.getOrThrow(yield* store.find(fingerprint)).revokedAt, epoch - 7000)
        // The first entry of a serial number counts.
        yield* put(epoch, [{ serial, revokedAt: epoch - 7000 }, { serial, revokedAt: epoch - 8000 }])
        assert.deepStrictEqual(yield* store.ofDevice(deviceId), [revoked])
        // What the list has revoked stays at the device: a later list may let it count again.
        const next = newCertificate(deviceId, authorityId)
        yield* store.insert(next, untouched)
        assert.deepStrictEqual(yield* store.ofDevice(deviceId), [stored(next), revoked])
        // Once `revoke` has revoked it, no list brings it back.
        assert.deepStrictEqual(Option.getOrThrow(yield* store.revoke(deviceId, serial, epoch + 1)), revoked)
        const nextRevoked = { ...next, revokedAt: epoch + 1 }
        assert.deepStrictEqual(yield* store.revoke(deviceId, next.serial, epoch + 1), Option.some(nextRevoked))
        yield* put(epoch + 1, [])
        assert.deepStrictEqual(yield* store.ofDevice(deviceId), [nextRevoked, revoked])
      }))

    it.effect("a certificate that is gone can be stored again", () =>
      Effect.gen(function*() {
        const store = yield* CertificateStore
        const { authority, authorityId, deviceId, product: { projectId } } = yield* insertBoth()
        const certificate = newCertificate(deviceId, authorityId, { endsAt: epoch + 1000 })
        yield* store.insert(certificate, untouched)
        // It has ended, and goes when the next one comes.
        yield* store.insert(newCertificate(deviceId, authorityId, { createdAt: epoch + 1000 }), untouched)
        const again = { ...certificate, endsAt: null, createdAt: epoch + 1000 }
        assert.strictEqual(yield* store.insert(again, untouched), "inserted")
        yield* store.removeAuthority(projectId, authorityId)
        assert.strictEqual(yield* store.insertAuthority(authority, registered), "inserted")
        assert.strictEqual(yield* store.insert(certificate, untouched), "inserted")
        assert.deepStrictEqual(yield* store.ofDevice(deviceId), [stored(certificate)])
      }))

    it.effect("certificates go with their device, and with their authority", () =>
      Effect.gen(function*() {
        const store = yield* CertificateStore
        const { authorityId, deviceId, product } = yield* insertBoth()
        const [other] = yield* insertDevices(product, [newDevice()])
        const [first, second] = [newCertificate(deviceId, authorityId), newCertificate(other!.deviceId, authorityId)]
        yield* store.insert(first, untouched)
        yield* store.insert(second, untouched)
        yield* (yield* DeviceStore).remove(product.projectId, deviceId)
        assert.deepStrictEqual(yield* store.ofDevice(deviceId), [])
        assert.isTrue(Option.isNone(yield* store.find(first.fingerprint)))
        assert.isTrue(Option.isSome(yield* store.find(second.fingerprint)))
        // It is free for another device.
        assert.strictEqual(yield* store.insert({ ...first, deviceId: other!.deviceId }, untouched), "inserted")
        assert.isTrue(yield* store.removeAuthority(product.projectId, authorityId))
        assert.deepStrictEqual(yield* store.ofDevice(other!.deviceId), [])
        assert.isTrue(Option.isNone(yield* store.find(second.fingerprint)))
      }))
  })
}
