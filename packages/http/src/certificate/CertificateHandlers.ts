/**
 * Handlers of the routes of client certificates and their authorities.
 */
import {
  CertificateAuthorities,
  type CertificateAuthority,
  Certificates,
  certificateStatusOf,
  type DeviceCertificate,
  expiryOf
} from "@device-cloud/core"
import { Clock, Effect } from "effect"
import { group } from "../ApiHandlers.ts"
import { Api } from "../DeviceCloudApi.ts"
import { dateText, done, respond } from "../Envelope.ts"
import { CurrentPrincipal } from "../middleware/Authorization.ts"
import { toCamelCase } from "../SnakeCase.ts"
import type { AuthorityInfo, CertificateInfo } from "./CertificateApi.ts"

/** Implements the group `certificates`. */
export const layer = group(
  Api,
  "certificates",
  Effect.fnUntraced(function*(handlers) {
    const certificates = yield* Certificates
    const authorities = yield* CertificateAuthorities
    const clock = yield* Clock.Clock
    const infoNow = (certificate: DeviceCertificate) => info(certificate, clock.currentTimeMillisUnsafe())

    return handlers.handleAll({
      addCertificate: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(
            certificates.add(projectId, params.device_id, toCamelCase(payload ?? {})),
            ({ authority, certificate, privateKey }) => ({
              ...infoNow(certificate),
              authority,
              ...privateKey === undefined ? {} : { private_key: privateKey }
            })
          )
        ),
      listCertificates: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(certificates.list(projectId, params.device_id), (all) => ({ results: all.map(infoNow) }))
        ),
      revokeCertificate: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => done(certificates.revoke(projectId, params.device_id, params.serial))),
      registerAuthority: ({ payload }) =>
        CurrentPrincipal.use(({ projectId }) => respond(authorities.register(projectId, payload), authorityInfo)),
      listAuthorities: () =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(authorities.list(projectId), (all) => ({ results: all.map(authorityInfo) }))
        ),
      verifyAuthority: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(authorities.verify(projectId, params.authority_id, payload), authorityInfo)
        ),
      putRevocationList: ({ params, payload }) =>
        CurrentPrincipal.use(({ projectId }) =>
          respond(authorities.putRevocationList(projectId, params.authority_id, payload), authorityInfo)
        ),
      removeAuthority: ({ params }) =>
        CurrentPrincipal.use(({ projectId }) => done(authorities.remove(projectId, params.authority_id)))
    })
  })
)

const info = (certificate: DeviceCertificate, now: number): typeof CertificateInfo.Type => ({
  serial: certificate.serial,
  fingerprint: certificate.fingerprint,
  subject: certificate.subject,
  status: certificateStatusOf(certificate, now),
  authority_id: certificate.authorityId,
  certificate: certificate.certificate,
  not_before: dateText(certificate.notBefore),
  not_after: dateText(certificate.notAfter),
  valid_until: dateText(expiryOf(certificate)),
  revoked_at: dateText(certificate.revokedAt),
  created_at: dateText(certificate.createdAt)
})

const authorityInfo = (authority: CertificateAuthority): typeof AuthorityInfo.Type => ({
  authority_id: authority.authorityId,
  kind: authority.kind,
  name: authority.name,
  state: authority.state,
  verification_code: authority.verificationCode,
  certificate: authority.certificate,
  fingerprint: authority.fingerprint,
  subject: authority.subject,
  not_before: dateText(authority.notBefore),
  not_after: dateText(authority.notAfter),
  crl: authority.revocationList === null ? null : {
    issued_at: dateText(authority.revocationList.issuedAt),
    next_at: dateText(authority.revocationList.nextAt),
    size: authority.revocationList.size
  },
  created_at: dateText(authority.createdAt)
})
