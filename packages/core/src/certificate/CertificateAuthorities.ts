/**
 * Manages the authorities whose certificates devices may have
 * (docs/api/certificates.md).
 */
import { Clock, Context, Effect, Layer } from "effect"
import { Identifiers } from "../kernel/Identifiers.ts"
import { decodeInput, InvalidInput } from "../kernel/InvalidInput.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import { type ProjectId, ProjectNotFound } from "../project/Project.ts"
import {
  AuthorityDraft,
  AuthorityNotFound,
  AuthorityVerification,
  type CertificateAuthority,
  CertificateTaken,
  maxAuthorities,
  RevocationListDraft,
  TooManyCertificates
} from "./Certificate.ts"
import { CertificateStore } from "./CertificateStore.ts"
import { HeldCertificates } from "./HeldCertificates.ts"
import { newAuthority } from "./NewAuthority.ts"
import { X509 } from "./X509.ts"

export class CertificateAuthorities extends Context.Service<CertificateAuthorities, {
  /**
   * Registers an authority in state `pending`: its certificates count once `verify`
   * has shown that the project may use its key.
   */
  readonly register: (
    projectId: ProjectId,
    draft: AuthorityDraft
  ) => Effect.Effect<
    CertificateAuthority,
    InvalidInput | ProjectNotFound | CertificateTaken | TooManyCertificates | StoreError
  >
  /** Sets the state to `active`. Fails with `InvalidInput` unless the authority has issued the certificate for its verification code. */
  readonly verify: (
    projectId: ProjectId,
    authorityId: string,
    verification: AuthorityVerification
  ) => Effect.Effect<CertificateAuthority, InvalidInput | AuthorityNotFound | StoreError>
  /** Returns the authorities of the project, the oldest first. */
  readonly list: (projectId: ProjectId) => Effect.Effect<ReadonlyArray<CertificateAuthority>, StoreError>
  /** Removes an authority with the certificates of devices that it has issued, and ends the connections that were made with them. */
  readonly remove: (projectId: ProjectId, authorityId: string) => Effect.Effect<void, AuthorityNotFound | StoreError>
  /**
   * Replaces the revocation list of an authority, and ends the connections that
   * were made with certificates on it. Fails with `InvalidInput` if the authority has not
   * signed the list, or the stored one was issued later.
   */
  readonly putRevocationList: (
    projectId: ProjectId,
    authorityId: string,
    draft: RevocationListDraft
  ) => Effect.Effect<CertificateAuthority, InvalidInput | AuthorityNotFound | StoreError>
}>()("@device-cloud/core/certificate/CertificateAuthorities") {
  static readonly layer: Layer.Layer<
    CertificateAuthorities,
    never,
    CertificateStore | HeldCertificates | Identifiers | X509
  > = Layer.effect(CertificateAuthorities, Effect.suspend(() => make))
}

const decodeDraft = decodeInput(AuthorityDraft)
const decodeVerification = decodeInput(AuthorityVerification)
const decodeList = decodeInput(RevocationListDraft)

const make = Effect.gen(function*() {
  const store = yield* CertificateStore
  const held = yield* HeldCertificates
  const identifiers = yield* Identifiers
  const x509 = yield* X509

  const readCertificate = (pem: string) =>
    Effect.mapError(Effect.fromResult(x509.read(pem)), (message) => InvalidInput.of("certificate", message))

  const get = Effect.fnUntraced(function*(projectId: ProjectId, authorityId: string) {
    const found = yield* store.authority(projectId, authorityId)
    return yield* Effect.fromOption(found, () => new AuthorityNotFound({ authorityId }))
  })

  const register = Effect.fn("CertificateAuthorities.register")(
    function*(projectId: ProjectId, input: AuthorityDraft) {
      const draft = yield* decodeDraft(input)
      const read = yield* readCertificate(draft.certificate)
      const now = yield* Clock.currentTimeMillis
      if (!read.isAuthority) {
        return yield* InvalidInput.of("certificate", "Expected the certificate of an authority (basicConstraints CA)")
      }
      if (now < read.notBefore || now >= read.notAfter) {
        return yield* InvalidInput.of("certificate", "Expected a certificate that is valid now")
      }
      const authority = yield* newAuthority(identifiers, projectId, "registered", draft.name, read)
      switch (yield* store.insertAuthority(authority, { privateKey: null, limit: maxAuthorities })) {
        case "inserted":
          return { ...authority, revocationList: null }
        case "taken":
          return yield* new CertificateTaken({ fingerprint: read.fingerprint })
        case "full":
          return yield* new TooManyCertificates({ of: "project", limit: maxAuthorities })
        case "no-project":
          return yield* new ProjectNotFound({ projectId })
      }
    }
  )

  const verify = Effect.fn("CertificateAuthorities.verify")(
    function*(projectId: ProjectId, authorityId: string, input: AuthorityVerification) {
      const authority = yield* get(projectId, authorityId)
      const { certificate } = yield* decodeVerification(input)
      if (authority.state === "active") return authority
      const read = yield* readCertificate(certificate)
      if (read.commonName !== authority.verificationCode) {
        return yield* InvalidInput.of("certificate", `Expected the common name ${authority.verificationCode}`)
      }
      if (!x509.isIssuedBy(read.pem, authority.certificate)) {
        return yield* InvalidInput.of("certificate", "Expected a certificate that this authority has issued")
      }
      if (!(yield* store.activateAuthority(projectId, authorityId))) {
        return yield* new AuthorityNotFound({ authorityId })
      }
      return { ...authority, state: "active" as const }
    }
  )

  const remove = Effect.fn("CertificateAuthorities.remove")(function*(projectId: ProjectId, authorityId: string) {
    if (!(yield* store.removeAuthority(projectId, authorityId))) return yield* new AuthorityNotFound({ authorityId })
    yield* held.changed("all")
  })

  const putRevocationList = Effect.fn("CertificateAuthorities.putRevocationList")(
    function*(projectId: ProjectId, authorityId: string, input: RevocationListDraft) {
      const authority = yield* get(projectId, authorityId)
      const { crl } = yield* decodeList(input)
      const { issuedAt, nextAt, revoked } = yield* Effect.mapError(
        Effect.fromResult(x509.readRevocationList(crl, authority.certificate)),
        (message) => InvalidInput.of("crl", message)
      )
      const revocationList = { issuedAt, nextAt, size: revoked.length }
      switch (yield* store.putRevocationList(projectId, authorityId, revocationList, revoked)) {
        case "stored":
          yield* held.changed("all")
          return { ...authority, revocationList }
        case "older":
          return yield* InvalidInput.of("crl", "Expected a list that was not issued before the one that is stored")
        case "not-found":
          return yield* new AuthorityNotFound({ authorityId })
      }
    }
  )

  return CertificateAuthorities.of({ register, verify, list: store.authorities, remove, putRevocationList })
})
