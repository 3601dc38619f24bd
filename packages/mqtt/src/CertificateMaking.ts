/**
 * Makes the certificates of `DevelopmentCertificate`.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign as signBytes } from "node:crypto"
import forge from "node-forge"

const dayMillis = 86_400_000
const lifetimeMillis = 825 * dayMillis

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

/** Makes an authority and a server certificate that it has signed, at `now` in Unix milliseconds. */
export const makeCertificates = (now: number) => {
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
