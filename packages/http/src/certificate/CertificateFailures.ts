/**
 * Failures of the routes of client certificates.
 */
import type * as Core from "@device-cloud/core"
import { Code } from "../Code.ts"
import { failure } from "../Failure.ts"

export const NoSuchCertificate = failure(
  "NoSuchCertificate",
  Code.noSuchCertificate,
  "The device has no such certificate"
)

export const NoSuchAuthority = failure("NoSuchAuthority", Code.noSuchCertificate, "The project has no such authority")

export const NotACertificateProduct = failure(
  "NotACertificateProduct",
  Code.operationUnfit,
  "The devices of the product sign with their secrets"
)

export const CertificateTaken = failure("CertificateTaken", Code.taken, "The certificate is in use already")

export const TooManyCertificates = failure(
  "TooManyCertificates",
  Code.stateForbids,
  "The device has too many certificates, or the project too many authorities"
)

/** From the errors of the domain. */
export const certificateFailures = {
  CertificateNotFound: ({ message }: Core.CertificateNotFound) => NoSuchCertificate.make({ message }),
  AuthorityNotFound: ({ message }: Core.AuthorityNotFound) => NoSuchAuthority.make({ message }),
  NotACertificateProduct: ({ message }: Core.NotACertificateProduct) => NotACertificateProduct.make({ message }),
  CertificateTaken: ({ message }: Core.CertificateTaken) => CertificateTaken.make({ message }),
  TooManyCertificates: ({ message }: Core.TooManyCertificates) => TooManyCertificates.make({ message })
}
