/**
 * The routes of client certificates and their authorities (docs/api/certificates.md).
 */
import {
  AuthorityDraft,
  AuthorityKind,
  AuthorityState,
  AuthorityVerification,
  CertificateDraft,
  CertificateStatus,
  RevocationListDraft
} from "@device-cloud/core"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { NoSuchDevice } from "../device/DeviceFailures.ts"
import { DateText, Envelope, EnvelopeOnly } from "../Envelope.ts"
import { IdempotencyMiddleware } from "../middleware/IdempotencyMiddleware.ts"
import * as PathParams from "../PathParams.ts"
import { toSnakeCase } from "../SnakeCase.ts"
import { NoSuchProject } from "../project/ProjectFailures.ts"
import {
  CertificateTaken,
  NoSuchAuthority,
  NoSuchCertificate,
  NotACertificateProduct,
  TooManyCertificates
} from "./CertificateFailures.ts"

/** A client certificate of a device. */
export const CertificateInfo = Schema.Struct({
  serial: Schema.String.annotate({ description: "Hex in lower case" }),
  fingerprint: Schema.String.annotate({ description: "SHA-256 of the certificate, hex in lower case" }),
  subject: Schema.String,
  status: CertificateStatus,
  authority_id: Schema.String,
  certificate: Schema.String.annotate({ description: "PEM" }),
  not_before: DateText,
  not_after: DateText,
  valid_until: DateText.annotate({ description: "not_after, or earlier for one that was replaced" }),
  revoked_at: DateText.annotate({ description: "Empty: it is not revoked" }),
  created_at: DateText
}).annotate({ identifier: "DeviceCertificate" })

/** An authority that issues certificates of devices. */
export const AuthorityInfo = Schema.Struct({
  authority_id: Schema.String,
  kind: AuthorityKind.annotate({ description: "own: the cloud issues with it" }),
  name: Schema.String,
  state: AuthorityState.annotate({ description: "pending: not verified yet" }),
  verification_code: Schema.String.annotate({ description: "The common name of the verification certificate" }),
  certificate: Schema.String.annotate({ description: "PEM" }),
  fingerprint: Schema.String,
  subject: Schema.String,
  not_before: DateText,
  not_after: DateText,
  crl: Schema.NullOr(Schema.Struct({
    issued_at: DateText,
    next_at: DateText,
    size: Schema.Int.annotate({ description: "Certificates on the list" })
  })),
  created_at: DateText
}).annotate({ identifier: "CertificateAuthority" })

const OneAuthority = Envelope(AuthorityInfo)

const pem = (label: string) => `-----BEGIN ${label}-----\nMIIB…\n-----END ${label}-----\n`

/** The group `certificates` of the typed client. */
export class CertificateApi extends HttpApiGroup.make("certificates").add(
  HttpApiEndpoint.post("addCertificate", "/things/:device_id/certificates", {
    params: PathParams.deviceId,
    payload: [
      toSnakeCase(CertificateDraft).annotate({ examples: [{ valid_days: 365, overlap: 86_400 }] }),
      Schema.Null
    ],
    success: Envelope(Schema.Struct({
      ...CertificateInfo.fields,
      authority: Schema.String.annotate({ description: "The certificate of the authority, PEM" }),
      private_key: Schema.optionalKey(
        Schema.String.annotate({ description: "PEM; only if the cloud has made the key, and only once" })
      )
    })),
    error: [NoSuchDevice, NoSuchAuthority, NotACertificateProduct, CertificateTaken, TooManyCertificates]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Give a device another certificate")
    .annotate(
      OpenApi.Description,
      "Issued by the authority of the project for the key of `csr`, or for a new key; or `certificate`, which a " +
        "registered authority has issued. `overlap`: for how many seconds more the earlier ones count."
    ),
  HttpApiEndpoint.get("listCertificates", "/things/:device_id/certificates", {
    params: PathParams.deviceId,
    success: Envelope(Schema.Struct({ results: Schema.Array(CertificateInfo) })),
    error: NoSuchDevice
  }).annotate(OpenApi.Summary, "List the certificates of a device, the newest first"),
  HttpApiEndpoint.delete("revokeCertificate", "/things/:device_id/certificates/:serial", {
    params: PathParams.certificate,
    success: EnvelopeOnly,
    error: [NoSuchDevice, NoSuchCertificate]
  }).annotate(OpenApi.Summary, "Revoke a certificate of a device")
    .annotate(OpenApi.Description, "Ends the connection that was made with it, on all nodes."),
  HttpApiEndpoint.post("registerAuthority", "/certificate-authorities", {
    payload: AuthorityDraft.annotate({ examples: [{ name: "Factory", certificate: pem("CERTIFICATE") }] }),
    success: OneAuthority,
    error: [NoSuchProject, CertificateTaken, TooManyCertificates]
  }).middleware(IdempotencyMiddleware).annotate(OpenApi.Summary, "Register an authority that issues certificates")
    .annotate(OpenApi.Description, "Its certificates count once the authority is verified."),
  HttpApiEndpoint.get("listAuthorities", "/certificate-authorities", {
    success: Envelope(Schema.Struct({ results: Schema.Array(AuthorityInfo) }))
  }).annotate(OpenApi.Summary, "List the authorities of the project, the oldest first"),
  HttpApiEndpoint.put("verifyAuthority", "/certificate-authorities/:authority_id/verification", {
    params: PathParams.authority,
    payload: AuthorityVerification.annotate({ examples: [{ certificate: pem("CERTIFICATE") }] }),
    success: OneAuthority,
    error: NoSuchAuthority
  }).annotate(OpenApi.Summary, "Show that the project may use the key of an authority")
    .annotate(OpenApi.Description, "With a certificate of the authority whose common name is `verification_code`."),
  HttpApiEndpoint.put("putRevocationList", "/certificate-authorities/:authority_id/crl", {
    params: PathParams.authority,
    payload: RevocationListDraft.annotate({ examples: [{ crl: pem("X509 CRL") }] }),
    success: OneAuthority,
    error: NoSuchAuthority
  }).annotate(OpenApi.Summary, "Replace the revocation list of an authority")
    .annotate(OpenApi.Description, "Ends the connections that were made with certificates on it, on all nodes."),
  HttpApiEndpoint.delete("removeAuthority", "/certificate-authorities/:authority_id", {
    params: PathParams.authority,
    success: EnvelopeOnly,
    error: NoSuchAuthority
  }).annotate(OpenApi.Summary, "Remove an authority with all certificates of devices that it has issued")
).annotate(OpenApi.Title, "Client certificates") {}
