/**
 * Certificates and their authorities as rows of SQLite.
 */
import type { CertificateAuthority, DeviceCertificate, DeviceId, ProjectId } from "@device-cloud/core"

export interface AuthorityRow {
  readonly authority_id: string
  readonly project_id: string
  readonly kind: CertificateAuthority["kind"]
  readonly name: string
  readonly state: CertificateAuthority["state"]
  readonly verification_code: string
  readonly certificate: string
  /** The own authority of a project has one. */
  readonly private_key: string | null
  readonly fingerprint: string
  readonly subject: string
  readonly not_before: number
  readonly not_after: number
  readonly list_issued_at: number | null
  readonly list_next_at: number | null
  readonly list_size: number | null
  readonly created_at: number
}

export const authorityFromRow = (row: AuthorityRow): CertificateAuthority => ({
  authorityId: row.authority_id,
  projectId: row.project_id as ProjectId,
  kind: row.kind,
  name: row.name,
  state: row.state,
  verificationCode: row.verification_code,
  certificate: row.certificate,
  fingerprint: row.fingerprint,
  subject: row.subject,
  notBefore: row.not_before,
  notAfter: row.not_after,
  revocationList: row.list_issued_at === null
    ? null
    : { issuedAt: row.list_issued_at, nextAt: row.list_next_at, size: row.list_size! },
  createdAt: row.created_at
})

export interface CertificateRow {
  readonly fingerprint: string
  readonly serial: string
  readonly device_id: string
  readonly authority_id: string
  readonly subject: string
  readonly certificate: string
  readonly not_before: number
  readonly not_after: number
  readonly ends_at: number | null
  readonly revoked_at: number | null
  readonly created_at: number
}

export const certificateFromRow = (row: CertificateRow): DeviceCertificate => ({
  fingerprint: row.fingerprint,
  serial: row.serial,
  deviceId: row.device_id as DeviceId,
  authorityId: row.authority_id,
  subject: row.subject,
  certificate: row.certificate,
  notBefore: row.not_before,
  notAfter: row.not_after,
  endsAt: row.ends_at,
  revokedAt: row.revoked_at,
  createdAt: row.created_at
})
