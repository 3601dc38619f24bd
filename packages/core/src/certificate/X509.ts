/**
 * Port: reads and issues X.509 certificates.
 */
import { Context, type Effect, type Result } from "effect"

/** What a certificate says. */
export interface ReadCertificate {
  /** PEM, in its usual form. */
  readonly pem: string
  /** SHA-256 of the certificate, 64 lower-case hex digits. */
  readonly fingerprint: string
  /** Lower-case hex without leading zero bytes. */
  readonly serial: string
  /** The subject on one line. */
  readonly subject: string
  /** The common name of the subject; undefined: it has none. */
  readonly commonName: string | undefined
  /** Whether it may issue certificates. */
  readonly isAuthority: boolean
  /** Whether a client may use it: it has no extended key usage, or one that says so. */
  readonly isForClients: boolean
  /** Unix milliseconds. */
  readonly notBefore: number
  /** Unix milliseconds. */
  readonly notAfter: number
}

/** A key pair in PEM: SubjectPublicKeyInfo and PKCS #8. */
export interface KeyPair {
  readonly publicKey: string
  readonly privateKey: string
}

/** A certificate with its private key, in PEM. */
export interface CertificateWithKey {
  readonly certificate: string
  readonly privateKey: string
}

/** What a revocation list says. Times are Unix milliseconds. */
export interface ReadRevocationList {
  readonly issuedAt: number
  readonly nextAt: number | null
  readonly revoked: ReadonlyArray<{
    /** Lower-case hex without leading zero bytes. */
    readonly serial: string
    readonly revokedAt: number
  }>
}

/** What a certificate is issued for. Times are Unix milliseconds, and count in whole seconds. */
export interface Issue {
  readonly commonName: string
  readonly notBefore: number
  readonly notAfter: number
}

/**
 * Certificates, requests and lists are in PEM. What reads them fails with a sentence
 * that says what was expected. Keys are accepted that are RSA of 2048 bits or more,
 * on the curves P-256, P-384 and P-521, or Ed25519.
 */
export class X509 extends Context.Service<X509, {
  /** Reads exactly one certificate. */
  readonly read: (pem: string) => Result.Result<ReadCertificate, string>
  /** Whether the key of the authority has signed the certificate, and the names fit. Both can be read. */
  readonly isIssuedBy: (certificate: string, authority: string) => boolean
  /** Reads the public key of a certificate request (PKCS #10) that is signed with it. */
  readonly readRequest: (pem: string) => Result.Result<string, string>
  /** Reads a whole revocation list that the authority has signed. */
  readonly readRevocationList: (pem: string, authority: string) => Result.Result<ReadRevocationList, string>
  /** Makes a key on the curve P-256. */
  readonly makeKey: Effect.Effect<KeyPair>
  /** Makes an authority with a key of its own. */
  readonly makeAuthority: (issue: Issue) => Effect.Effect<CertificateWithKey>
  /** Issues a client certificate for a public key. The authority is one of `makeAuthority`. */
  readonly issue: (publicKey: string, issue: Issue, authority: CertificateWithKey) => Effect.Effect<string>
}>()("@device-cloud/core/certificate/X509") {}
