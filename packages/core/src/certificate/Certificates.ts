/**
 * Manages the client certificates of devices (docs/api/certificates.md).
 */
import { Clock, Context, Effect, Layer, Option, Result } from "effect"
import { CurrentAction } from "../audit/AuditedAction.ts"
import { type DeviceId, deviceKey, DeviceNotFound } from "../device/Device.ts"
import { Devices } from "../device/Devices.ts"
import { Identifiers } from "../kernel/Identifiers.ts"
import { decodeInput, InvalidInput } from "../kernel/InvalidInput.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import {
  AuthorityNotFound,
  type CertificateAuthority,
  CertificateDraft,
  CertificateNotFound,
  CertificateTaken,
  defaultValidDays,
  type DeviceCertificate,
  maxCertificates,
  NotACertificateProduct,
  TooManyCertificates
} from "./Certificate.ts"
import { CertificateStore, type SigningAuthority } from "./CertificateStore.ts"
import { HeldCertificates } from "./HeldCertificates.ts"
import { newAuthority } from "./NewAuthority.ts"
import { type ReadCertificate, X509 } from "./X509.ts"

/** A certificate that a device has got. */
export interface IssuedCertificate {
  readonly certificate: DeviceCertificate
  /** The certificate of the authority, in PEM. */
  readonly authority: string
  /** The private key in PEM (PKCS #8), if the cloud has made it. It is told once and not stored. */
  readonly privateKey: string | undefined
}

export class Certificates extends Context.Service<Certificates, {
  /**
   * Gives a device another certificate: one that the project's own authority
   * issues, for the key of a request or for a key that is made here, or one that a
   * registered authority has issued. The first call of a project makes its
   * authority. With `overlap`, the earlier certificates of the device stop to
   * count after this time; connections stay.
   */
  readonly add: (
    projectId: ProjectId,
    deviceId: DeviceId,
    draft: CertificateDraft
  ) => Effect.Effect<
    IssuedCertificate,
    | InvalidInput
    | DeviceNotFound
    | NotACertificateProduct
    | CertificateTaken
    | TooManyCertificates
    | AuthorityNotFound
    | StoreError
  >
  /**
   * Returns the certificates of the device, the newest first, at most 50. Those that
   * do not count any more go when another is added.
   */
  readonly list: (
    projectId: ProjectId,
    deviceId: DeviceId
  ) => Effect.Effect<ReadonlyArray<DeviceCertificate>, DeviceNotFound | StoreError>
  /** Revokes a certificate on all nodes, and ends the connection that was made with it. */
  readonly revoke: (
    projectId: ProjectId,
    deviceId: DeviceId,
    serial: string
  ) => Effect.Effect<DeviceCertificate, DeviceNotFound | CertificateNotFound | StoreError>
}>()("@device-cloud/core/certificate/Certificates") {
  static readonly layer: Layer.Layer<
    Certificates,
    never,
    CertificateStore | Devices | HeldCertificates | Identifiers | X509
  > = Layer.effect(Certificates, Effect.suspend(() => make))
}

const day = 86_400_000
/** A certificate counts from a little before it is issued: the clocks of servers differ. Milliseconds. */
const backdated = 300_000
/** How long the own authority of a project is valid. */
const authorityValidity = 30 * 365 * day

const decodeDraft = decodeInput(CertificateDraft)

/** When a certificate stops to count because its authority expires before it; null: it does not. */
const endWith = (notAfter: number, authority: CertificateAuthority): number | null =>
  authority.notAfter < notAfter ? authority.notAfter : null

const make = Effect.gen(function*() {
  const store = yield* CertificateStore
  const devices = yield* Devices
  const held = yield* HeldCertificates
  const identifiers = yield* Identifiers
  const x509 = yield* X509

  /** Returns the own authority of the project; makes it when it is first needed. */
  const ownAuthority = Effect.fnUntraced(function*(projectId: ProjectId, now: number) {
    const known = yield* store.ownAuthority(projectId)
    if (Option.isSome(known)) return known.value
    const { certificate, privateKey } = yield* x509.makeAuthority({
      commonName: `Device Cloud ${projectId}`,
      notBefore: now - backdated,
      notAfter: now + authorityValidity
    })
    const read = Result.getOrThrow(x509.read(certificate))
    const authority = yield* newAuthority(identifiers, projectId, "own", "Device Cloud", read)
    // Another node may have been first. The entry of the audit log is for the certificate.
    yield* store.insertAuthority(authority, { privateKey, limit: Number.MAX_SAFE_INTEGER }).pipe(
      Effect.provideService(CurrentAction, undefined)
    )
    return yield* Effect.fromOption(
      yield* store.ownAuthority(projectId),
      () => new AuthorityNotFound({ authorityId: authority.authorityId })
    )
  })

  /** Issues a certificate for the key of a request, or for a key that is made here. */
  const issue = Effect.fnUntraced(function*(
    { authority, privateKey: signingKey }: SigningAuthority,
    commonName: string,
    { csr, validDays = defaultValidDays }: CertificateDraft,
    now: number
  ) {
    const key = csr === undefined
      ? yield* x509.makeKey
      : {
        publicKey: yield* Effect.mapError(
          Effect.fromResult(x509.readRequest(csr)),
          (message) => InvalidInput.of("csr", message)
        ),
        privateKey: undefined
      }
    const certificate = yield* x509.issue(key.publicKey, {
      commonName,
      notBefore: now - backdated,
      notAfter: Math.min(now + validDays * day, authority.notAfter)
    }, { certificate: authority.certificate, privateKey: signingKey })
    return { read: Result.getOrThrow(x509.read(certificate)), authority, privateKey: key.privateKey }
  })

  /** Finds the registered authority of a certificate: one that was renewed with its key is there several times. */
  const recognize = Effect.fnUntraced(function*(projectId: ProjectId, pem: string, now: number) {
    const read = yield* Effect.mapError(
      Effect.fromResult(x509.read(pem)),
      (message) => InvalidInput.of("certificate", message)
    )
    if (read.isAuthority) {
      return yield* InvalidInput.of("certificate", "Expected the certificate of a device, not of an authority")
    }
    if (!read.isForClients) {
      return yield* InvalidInput.of("certificate", "Expected a certificate with which clients may prove themselves")
    }
    if (read.notAfter <= now) {
      return yield* InvalidInput.of("certificate", "Expected a certificate that has not expired")
    }
    const [authority] = (yield* store.authorities(projectId))
      .filter(({ certificate, kind, notAfter, state }) =>
        kind === "registered" && state === "active" && now < notAfter && x509.isIssuedBy(read.pem, certificate)
      )
      .sort((one, other) => other.notAfter - one.notAfter)
    return authority === undefined
      ? yield* InvalidInput.of(
        "certificate",
        "Expected a certificate of an authority that the project has registered and verified, and that has not expired"
      )
      : { read, authority, privateKey: undefined }
  })

  const insert = Effect.fnUntraced(function*(
    deviceId: DeviceId,
    { fingerprint, notAfter, notBefore, pem, serial, subject }: ReadCertificate,
    authority: CertificateAuthority,
    overlap: number | undefined,
    now: number
  ) {
    const certificate: DeviceCertificate = {
      fingerprint,
      serial,
      deviceId,
      authorityId: authority.authorityId,
      subject,
      certificate: pem,
      notBefore,
      notAfter,
      endsAt: endWith(notAfter, authority),
      revokedAt: null,
      createdAt: now
    }
    const othersEndAt = overlap === undefined ? null : now + overlap * 1000
    switch (yield* store.insert(certificate, { othersEndAt, limit: maxCertificates })) {
      case "inserted":
        return certificate
      case "taken":
        return yield* new CertificateTaken({ fingerprint })
      case "full":
        return yield* new TooManyCertificates({ of: "device", limit: maxCertificates })
      case "no-device":
        return yield* DeviceNotFound.of({ deviceId })
      case "no-authority":
        return yield* new AuthorityNotFound({ authorityId: authority.authorityId })
    }
  })

  const add = Effect.fn("Certificates.add")(
    function*(projectId: ProjectId, deviceId: DeviceId, input: CertificateDraft) {
      const { device, product } = yield* devices.get(projectId, { deviceId })
      const draft = yield* decodeDraft(input)
      if (product.authType !== "certificate") {
        return yield* new NotACertificateProduct({ productKey: product.productKey })
      }
      const now = yield* Clock.currentTimeMillis
      const { authority, privateKey, read } = draft.certificate === undefined
        ? yield* issue(yield* ownAuthority(projectId, now), deviceKey(device), draft, now)
        : yield* recognize(projectId, draft.certificate, now)
      const certificate = yield* insert(deviceId, read, authority, draft.overlap, now)
      // Another device may have had the certificate before.
      const changed = draft.overlap === undefined ? [certificate] : yield* store.ofDevice(deviceId)
      yield* held.changed({ deviceId, fingerprints: changed.map(({ fingerprint }) => fingerprint) })
      return { certificate, authority: authority.certificate, privateKey }
    }
  )

  const list = Effect.fn("Certificates.list")(function*(projectId: ProjectId, deviceId: DeviceId) {
    yield* devices.get(projectId, { deviceId })
    return yield* store.ofDevice(deviceId)
  })

  const revoke = Effect.fn("Certificates.revoke")(
    function*(projectId: ProjectId, deviceId: DeviceId, serial: string) {
      yield* devices.get(projectId, { deviceId })
      const revoked = yield* store.revoke(deviceId, serial.toLowerCase(), yield* Clock.currentTimeMillis)
      if (Option.isNone(revoked)) return yield* new CertificateNotFound({ deviceId, serial })
      yield* held.changed({ deviceId, fingerprints: [revoked.value.fingerprint] })
      return revoked.value
    }
  )

  return Certificates.of({ add, list, revoke })
})
