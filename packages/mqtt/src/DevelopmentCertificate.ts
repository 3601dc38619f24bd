/**
 * A certificate authority and a server certificate for development, for `localhost`
 * and `127.0.0.1`, made once and kept in a directory. Both keys are on the curve P-256:
 * a handshake costs a fraction of one with RSA, and the keys are made at once.
 */
import { Clock, Effect, Schema } from "effect"
import {
  createHash,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign as signBytes,
  X509Certificate
} from "node:crypto"
import { mkdir, readFile, rename, writeFile } from "node:fs/promises"
import { join } from "node:path"
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
      const made = makeCertificates(now)
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

const { asn1, jsbn, md, pem, pki, util } = forge

const derOf = (publicKey: KeyObject): string => publicKey.export({ type: "spki", format: "der" }).toString("binary")

/** As bytes in a text. */
const keyIdentifierOf = (publicKey: KeyObject): string =>
  createHash("sha1").update(derOf(publicKey), "binary").digest("binary")

const value = (type: forge.asn1.Type, content: string | Array<forge.asn1.Asn1>): forge.asn1.Asn1 =>
  asn1.create(asn1.Class.UNIVERSAL, type, typeof content !== "string", content)

const ecdsaWithSha256 = value(asn1.Type.SEQUENCE, [
  value(asn1.Type.OID, asn1.oidToDer("1.2.840.10045.4.3.2").getBytes())
])

/** The places of the algorithm and of the public key in the part of a certificate that is signed (RFC 5280, section 4.1). */
const algorithmPlace = 2
const publicKeyPlace = 6

/** node-forge knows keys of RSA only; one stands where the key of a certificate will be. */
const otherKey = pki.setRsaPublicKey(new jsbn.BigInteger("3"), new jsbn.BigInteger("3"))

/** A certificate, as node-forge keeps it. */
interface WrittenCertificate extends forge.pki.Certificate {
  readonly tbsCertificate: { readonly value: Array<forge.asn1.Asn1> } & forge.asn1.Asn1
}

/** Signs a certificate for a public key. Returns it as PEM. */
const sign = (certificate: forge.pki.Certificate, publicKey: KeyObject, privateKey: KeyObject): string => {
  certificate.sign({ sign: () => "" } as unknown as forge.pki.rsa.PrivateKey, md.sha256.create())
  const { tbsCertificate: unsigned } = certificate as WrittenCertificate
  unsigned.value[algorithmPlace] = ecdsaWithSha256
  unsigned.value[publicKeyPlace] = asn1.fromDer(util.createBuffer(derOf(publicKey)))
  const bytes = Buffer.from(asn1.toDer(unsigned).getBytes(), "binary")
  const signature = signBytes("sha256", bytes, privateKey).toString("binary")
  // No bit of the signature is left over.
  const signed = value(asn1.Type.SEQUENCE, [unsigned, ecdsaWithSha256, value(asn1.Type.BITSTRING, `\0${signature}`)])
  return pem.encode({ type: "CERTIFICATE", body: asn1.toDer(signed).getBytes() })
}

const makeCertificates = (now: number) => {
  const authorityKeys = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const serverKeys = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const authorityIdentifier = keyIdentifierOf(authorityKeys.publicKey)

  const certificate = (commonName: string, extensions: ReadonlyArray<object>, publicKey: KeyObject) => {
    const made = pki.createCertificate()
    made.publicKey = otherKey
    // A serial number is positive and has no leading zeros: the first bit is 0, the second 1.
    const serial = randomBytes(16)
    serial[0] = (serial[0]! & 0x7f) | 0x40
    made.serialNumber = serial.toString("hex")
    made.validity.notBefore = new Date(now - dayMillis)
    made.validity.notAfter = new Date(now + lifetimeMillis)
    made.setSubject([...subject(commonName)])
    made.setIssuer([...subject("Device Cloud development CA")])
    made.setExtensions([...extensions])
    return sign(made, publicKey, authorityKeys.privateKey)
  }

  return {
    authority: certificate("Device Cloud development CA", [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
      { name: "subjectKeyIdentifier", value: value(asn1.Type.OCTETSTRING, authorityIdentifier) }
    ], authorityKeys.publicKey),
    certificate: certificate("localhost", [
      { name: "basicConstraints", cA: false, critical: true },
      { name: "keyUsage", digitalSignature: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      { name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }, { type: 7, ip: "127.0.0.1" }] },
      { name: "authorityKeyIdentifier", keyIdentifier: authorityIdentifier }
    ], serverKeys.publicKey),
    key: serverKeys.privateKey.export({ type: "pkcs8", format: "pem" }).toString()
  }
}
