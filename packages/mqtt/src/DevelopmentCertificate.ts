/**
 * A certificate authority and a server certificate for development: RSA-2048,
 * for `localhost` and `127.0.0.1`, made once and kept in a directory.
 */
import { Clock, Effect, Schema } from "effect"
import { generateKeyPair, randomBytes } from "node:crypto"
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
  const { notAfter } = forge.pki.certificateFromPem(certificate).validity
  return notAfter.getTime() - now < renewalMillis ? undefined : { authority, certificate, key }
}

const makeKeys = async (): Promise<forge.pki.rsa.KeyPair> => {
  const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength: 2048 })
  const key = forge.pki.privateKeyFromPem(privateKey.export({ type: "pkcs1", format: "pem" }).toString())
  return { privateKey: key, publicKey: forge.pki.rsa.setPublicKey(key.n, key.e) }
}

const subject = (commonName: string): ReadonlyArray<forge.pki.CertificateField> => [
  { name: "organizationName", value: "Device Cloud development" },
  { name: "commonName", value: commonName }
]

const keyIdentifierOf = ({ publicKey }: forge.pki.rsa.KeyPair): string =>
  forge.pki.getPublicKeyFingerprint(publicKey, { type: "RSAPublicKey", encoding: "binary" })

const makeCertificates = async (now: number) => {
  const [authorityKeys, serverKeys] = await Promise.all([makeKeys(), makeKeys()])

  const certificate = (commonName: string, keys: forge.pki.rsa.KeyPair, extensions: ReadonlyArray<object>) => {
    const made = forge.pki.createCertificate()
    made.publicKey = keys.publicKey
    // A serial number is positive and has no leading zeros: the first bit is 0, the second 1.
    const serial = randomBytes(16)
    serial[0] = (serial[0]! & 0x7f) | 0x40
    made.serialNumber = serial.toString("hex")
    made.validity.notBefore = new Date(now - dayMillis)
    made.validity.notAfter = new Date(now + lifetimeMillis)
    made.setSubject([...subject(commonName)])
    made.setIssuer([...subject("Device Cloud development CA")])
    made.setExtensions([...extensions])
    made.sign(authorityKeys.privateKey, forge.md.sha256.create())
    return forge.pki.certificateToPem(made)
  }

  return {
    authority: certificate("Device Cloud development CA", authorityKeys, [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
      { name: "subjectKeyIdentifier" }
    ]),
    certificate: certificate("localhost", serverKeys, [
      { name: "basicConstraints", cA: false, critical: true },
      { name: "keyUsage", digitalSignature: true, keyEncipherment: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      { name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }, { type: 7, ip: "127.0.0.1" }] },
      { name: "subjectKeyIdentifier" },
      { name: "authorityKeyIdentifier", keyIdentifier: keyIdentifierOf(authorityKeys) }
    ]),
    key: forge.pki.privateKeyToPem(serverKeys.privateKey)
  }
}
