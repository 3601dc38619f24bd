/**
 * A certificate authority and a server certificate for development, for `localhost`
 * and `127.0.0.1`, made once and kept in a directory. The key of the server is on the
 * curve P-256: a handshake costs a fraction of one with RSA.
 */
import { Clock, Effect, Schema } from "effect"
import { generateKeyPair, type KeyObject, randomBytes, sign as signBytes, X509Certificate } from "node:crypto"
import { mkdir, readFile, rename, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import forge from "node-forge"

/** The certificate of a TLS server. */
export interface ServerCertificate {
  /** The certificate, and those of intermediate authorities after it, as PEM. */
  readonly certificate: string
  /** The private key as PEM. */
  readonly key: string
}

/** A server certificate with the authority that has signed it. */
export interface DevelopmentCertificate extends ServerCertificate {
  /** The certificate of the authority as PEM; devices must trust it. */
  readonly authority: string
  /** The path of the file with the certificate of the authority. */
  readonly authorityFile: string
}

/** The certificate cannot be read from the directory, or made there. */
export class CertificateError extends Schema.TaggedError<CertificateError>()("CertificateError", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

const dayMillis = 86_400_000
const lifetimeMillis = 825 * dayMillis
/** A certificate with less time left is made anew. */
const renewalMillis = 30 * dayMillis

/** Returns the certificate in `directory`; makes one if it is missing or about to expire. */
export const loadOrMake = Effect.fnUntraced(function*(directory: string) {
  const now = yield* Clock.currentTimeMillis
  return yield* Effect.tryPromise({
    try: async (): Promise<DevelopmentCertificate> => {
      const authorityFile = join(directory, "ca.pem")
      const kept = await load(directory, now)
      if (kept !== undefined) return { ...kept, authorityFile }
      const made = await makeCertificates(now)
      await mkdir(directory, { recursive: true, mode: 0o700 })
      // The server's certificate comes last: `load` ignores the other files without it.
      await write(join(directory, "ca.pem"), made.authority)
      await write(join(directory, "server.key"), made.key)
      await write(join(directory, "server.pem"), made.certificate)
      return { ...made, authorityFile }
    },
    catch: (cause) =>
      new CertificateError({ message: `The development certificate in ${directory} cannot be read or made`, cause })
  })
})

const write = async (file: string, text: string): Promise<void> => {
  await writeFile(`${file}.new`, text, { mode: 0o600 })
  await rename(`${file}.new`, file)
}

const load = async (directory: string, now: number) => {
  const read = (name: string) => readFile(join(directory, name), "utf8").catch(() => undefined)
  const [authority, certificate, key] = await Promise.all([read("ca.pem"), read("server.pem"), read("server.key")])
  if (authority === undefined || certificate === undefined || key === undefined) return undefined
  const notAfter = Date.parse(new X509Certificate(certificate).validTo)
  return notAfter - now < renewalMillis ? undefined : { authority, certificate, key }
}

const subject = (commonName: string): ReadonlyArray<forge.pki.CertificateField> => [
  { name: "organizationName", value: "Device Cloud development" },
  { name: "commonName", value: commonName }
]

const keyIdentifierOf = (publicKey: forge.pki.rsa.PublicKey): string =>
  forge.pki.getPublicKeyFingerprint(publicKey, { type: "RSAPublicKey", encoding: "binary" })

/** The place of the public key in the part of a certificate that is signed (RFC 5280, section 4.1). */
const publicKeyPlace = 6

/** A signed certificate, as node-forge keeps it. */
interface SignedCertificate extends forge.pki.Certificate {
  readonly tbsCertificate: { readonly value: Array<forge.asn1.Asn1> } & forge.asn1.Asn1
}

/**
 * Signs a certificate for a public key of any kind. node-forge itself knows keys of RSA only, and is slow with them:
 * it only writes down what is signed here.
 */
const sign = (certificate: forge.pki.Certificate, publicKey: KeyObject, privateKey: KeyObject): void => {
  const { asn1, md, util } = forge
  certificate.sign({ sign: () => "" } as unknown as forge.pki.rsa.PrivateKey, md.sha256.create())
  const { tbsCertificate } = certificate as SignedCertificate
  const der = util.createBuffer(publicKey.export({ type: "spki", format: "der" }).toString("binary"))
  tbsCertificate.value[publicKeyPlace] = asn1.fromDer(der)
  const signed = Buffer.from(asn1.toDer(tbsCertificate).getBytes(), "binary")
  certificate.signature = signBytes("sha256", signed, privateKey).toString("binary")
}

const makeCertificates = async (now: number) => {
  const [authorityKeys, serverKeys] = await Promise.all([
    promisify(generateKeyPair)("rsa", { modulusLength: 2048 }),
    promisify(generateKeyPair)("ec", { namedCurve: "P-256" })
  ])

  const authorityPublicKey = forge.pki.publicKeyFromPem(
    authorityKeys.publicKey.export({ type: "spki", format: "pem" }).toString()
  )

  const certificate = (commonName: string, extensions: ReadonlyArray<object>, publicKey: KeyObject) => {
    const made = forge.pki.createCertificate()
    made.publicKey = authorityPublicKey
    // A serial number is positive and has no leading zeros: the first bit is 0, the second 1.
    const serial = randomBytes(16)
    serial[0] = (serial[0]! & 0x7f) | 0x40
    made.serialNumber = serial.toString("hex")
    made.validity.notBefore = new Date(now - dayMillis)
    made.validity.notAfter = new Date(now + lifetimeMillis)
    made.setSubject([...subject(commonName)])
    made.setIssuer([...subject("Device Cloud development CA")])
    made.setExtensions([...extensions])
    sign(made, publicKey, authorityKeys.privateKey)
    return forge.pki.certificateToPem(made)
  }

  return {
    authority: certificate("Device Cloud development CA", [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
      { name: "subjectKeyIdentifier" }
    ], authorityKeys.publicKey),
    certificate: certificate("localhost", [
      { name: "basicConstraints", cA: false, critical: true },
      { name: "keyUsage", digitalSignature: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      { name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }, { type: 7, ip: "127.0.0.1" }] },
      { name: "authorityKeyIdentifier", keyIdentifier: keyIdentifierOf(authorityPublicKey) }
    ], serverKeys.publicKey),
    key: serverKeys.privateKey.export({ type: "pkcs8", format: "pem" }).toString()
  }
}
