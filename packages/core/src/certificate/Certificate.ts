/**
 * Client certificates of devices, and the authorities that issue them
 * (docs/protocol/certificates.md).
 */
import { Schema } from "effect"
import type { DeviceId } from "../device/Device.ts"
import { DomainError } from "../kernel/DomainError.ts"
import { maxOverlap } from "../kernel/RotatedSecret.ts"
import { NonBlankText, Text } from "../kernel/Text.ts"
import type { ProjectId } from "../project/Project.ts"

/** Certificates of one device. */
export const maxCertificates = 50

/** Authorities of one project, its own included. */
export const maxAuthorities = 20

/** Who issued a certificate: the cloud for the project, or somebody whose authority the project has registered. */
export const AuthorityKind = Schema.Literals(["own", "registered"])
export type AuthorityKind = typeof AuthorityKind.Type

/** `pending`: nobody has shown yet that the project may use the key of the authority. */
export const AuthorityState = Schema.Literals(["pending", "active"])
export type AuthorityState = typeof AuthorityState.Type

/** The revocation list of an authority; the store has the serial numbers. Times are Unix milliseconds. */
export interface RevocationList {
  readonly issuedAt: number
  /** When the authority issues the next one; null: the list does not say. */
  readonly nextAt: number | null
  /** Certificates on the list. */
  readonly size: number
}

/** An authority of a project. Times are Unix milliseconds. */
export interface CertificateAuthority {
  readonly authorityId: string
  readonly projectId: ProjectId
  readonly kind: AuthorityKind
  readonly name: string
  readonly state: AuthorityState
  /** The common name that the verification certificate must have. */
  readonly verificationCode: string
  /** PEM. */
  readonly certificate: string
  /** SHA-256 of the certificate, 64 lower-case hex digits. */
  readonly fingerprint: string
  readonly subject: string
  readonly notBefore: number
  readonly notAfter: number
  readonly revocationList: RevocationList | null
  readonly createdAt: number
}

/** An authority before it is stored. */
export type NewAuthority = Omit<CertificateAuthority, "revocationList">

/** A client certificate of a device. Times are Unix milliseconds. */
export interface DeviceCertificate {
  /** SHA-256 of the certificate, 64 lower-case hex digits. */
  readonly fingerprint: string
  /** The serial number, lower-case hex without leading zero bytes; unique among the certificates of the device. */
  readonly serial: string
  readonly deviceId: DeviceId
  readonly authorityId: string
  readonly subject: string
  /** PEM. */
  readonly certificate: string
  readonly notBefore: number
  readonly notAfter: number
  /** When it stops to count before `notAfter`: it was replaced, or its authority expires; null: it does not. */
  readonly endsAt: number | null
  /** When it was revoked, in the cloud or on the list of its authority; null: it was not. */
  readonly revokedAt: number | null
  readonly createdAt: number
}

/** A certificate before it is stored. */
export type NewCertificate = Omit<DeviceCertificate, "revokedAt">

export const CertificateStatus = Schema.Literals(["active", "expired", "revoked"])
export type CertificateStatus = typeof CertificateStatus.Type

/** When the certificate stops to count, unless it is revoked, Unix milliseconds. */
export const expiryOf = ({ endsAt, notAfter }: Pick<DeviceCertificate, "endsAt" | "notAfter">): number =>
  endsAt === null ? notAfter : Math.min(endsAt, notAfter)

export const statusOf = (certificate: DeviceCertificate, now: number): CertificateStatus =>
  certificate.revokedAt !== null ? "revoked" : now < expiryOf(certificate) ? "active" : "expired"

/** Why a certificate does not prove who its device is; undefined: it does. `now`: Unix milliseconds. */
export const refusalOf = (certificate: DeviceCertificate, now: number): string | undefined => {
  if (certificate.revokedAt !== null) return "the certificate is revoked"
  if (now >= certificate.notAfter) return "the certificate has expired"
  if (now >= expiryOf(certificate)) return "the certificate was replaced, or its authority has expired"
  return now < certificate.notBefore ? "the certificate is not valid yet" : undefined
}

/** Characters of a certificate or a request in PEM. */
const maxPemLength = 16 * 1024
/** Characters of a revocation list in PEM: about 10,000 certificates. */
const maxListLength = 512 * 1024

/** What the caller decides about a new certificate. */
export const CertificateDraft = Schema.Struct({
  /** A request (PKCS #10) in PEM, whose key the certificate is for. */
  csr: Schema.optional(Text(maxPemLength)),
  /** A certificate of a registered authority in PEM, which becomes one of the device. */
  certificate: Schema.optional(Text(maxPemLength)),
  /** How long a new certificate is valid, days. Default: 365. */
  validDays: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3650 }))),
  /** For how many seconds more the earlier certificates of the device count. Default: they are not touched. */
  overlap: Schema.optional(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: maxOverlap })))
}).check(
  Schema.makeFilter(({ certificate, csr, validDays }): ReadonlyArray<Schema.FilterIssue> => {
    if (certificate === undefined) return []
    return [
      ...csr === undefined ? [] : [{ path: ["csr"], issue: "Expected no request beside a certificate" }],
      ...validDays === undefined ? [] : [{ path: ["validDays"], issue: "Expected nothing: the certificate says it" }]
    ]
  })
)
export interface CertificateDraft extends Schema.Schema.Type<typeof CertificateDraft> {}

/** Validity of a new certificate unless the caller says otherwise, days. */
export const defaultValidDays = 365

/** What the caller says about an authority to register. */
export const AuthorityDraft = Schema.Struct({
  name: NonBlankText(128),
  /** The certificate of the authority in PEM. */
  certificate: Text(maxPemLength)
})
export interface AuthorityDraft extends Schema.Schema.Type<typeof AuthorityDraft> {}

/** Shows that the caller may use the key of an authority. */
export const AuthorityVerification = Schema.Struct({
  /** A certificate of the authority in PEM, whose common name is the verification code. */
  certificate: Text(maxPemLength)
})
export interface AuthorityVerification extends Schema.Schema.Type<typeof AuthorityVerification> {}

export const RevocationListDraft = Schema.Struct({
  /** The revocation list (RFC 5280) in PEM. */
  crl: Text(maxListLength)
})
export interface RevocationListDraft extends Schema.Schema.Type<typeof RevocationListDraft> {}

/** The project has no such authority. */
export class AuthorityNotFound extends DomainError<AuthorityNotFound>()(
  "AuthorityNotFound",
  { authorityId: Schema.String },
  ({ authorityId }) => `There is no certificate authority ${authorityId}`
) {}

/** The device has no such certificate. */
export class CertificateNotFound extends DomainError<CertificateNotFound>()(
  "CertificateNotFound",
  { deviceId: Schema.String, serial: Schema.String },
  ({ deviceId, serial }) => `Device ${deviceId} has no certificate with serial number ${serial}`
) {}

/** The devices of the product sign with their secrets. */
export class NotACertificateProduct extends DomainError<NotACertificateProduct>()(
  "NotACertificateProduct",
  { productKey: Schema.String },
  ({ productKey }) =>
    `The devices of product ${productKey} sign with their secrets; only products with auth_type certificate have certificates`
) {}

/** A device has the certificate already, or the project the authority. */
export class CertificateTaken extends DomainError<CertificateTaken>()(
  "CertificateTaken",
  { fingerprint: Schema.String },
  ({ fingerprint }) => `The certificate with fingerprint ${fingerprint} is in use already`
) {}

/** The device has {@link maxCertificates} certificates, or the project {@link maxAuthorities} authorities. */
export class TooManyCertificates extends DomainError<TooManyCertificates>()(
  "TooManyCertificates",
  { of: Schema.Literals(["device", "project"]), limit: Schema.Int },
  ({ limit, of }) =>
    of === "device"
      ? `The device has ${limit} certificates, which is the most; revoke some`
      : `The project has ${limit} certificate authorities, which is the most; remove one`
) {}
