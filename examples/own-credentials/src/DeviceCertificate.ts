/**
 * Certificates that a factory puts on devices. The common name of a certificate
 * is `{product_key}/{device_name}`.
 */
import { DeviceName, type DeviceProver, ProductKey, ProofRefused } from "@device-cloud/core"
import { Clock, Effect, Option } from "effect"
import { generateKeyPair, randomBytes } from "node:crypto"
import { promisify } from "node:util"
import forge from "node-forge"

/**
 * The prover of client certificates. The broker hands it only certificates of the
 * authorities that it trusts, so the common name is what the factory has signed.
 */
export const prover: DeviceProver = Effect.fnUntraced(function*({ certificate }) {
  if (certificate === undefined) return Option.none()
  const [productKey, deviceName, ...rest] = certificate.commonName?.split("/") ?? []
  if (!productKey || !deviceName || rest.length > 0) {
    return yield* new ProofRefused({ reason: "the common name of the certificate names no device" })
  }
  return Option.some({ productKey: ProductKey.make(productKey), deviceName: DeviceName.make(deviceName) })
})

/** What a device needs for TLS, as PEM. */
export interface DeviceIdentityFiles {
  readonly cert: string
  readonly key: string
}

/** The authority of a factory. */
export interface Factory {
  /** The certificate of the authority as PEM: the `clientAuthorities` of the broker. */
  readonly authority: string
  /** Makes a key and a certificate with this common name. */
  readonly issue: (commonName: string) => Effect.Effect<DeviceIdentityFiles>
}

const yearMillis = 365 * 86_400_000

const makeKeys = Effect.promise(async (): Promise<forge.pki.rsa.KeyPair> => {
  const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength: 2048 })
  const key = forge.pki.privateKeyFromPem(privateKey.export({ type: "pkcs1", format: "pem" }).toString())
  return { privateKey: key, publicKey: forge.pki.rsa.setPublicKey(key.n, key.e) }
})

interface Signer {
  readonly name: string
  readonly key: forge.pki.rsa.PrivateKey
}

/** A certificate for a year, signed by `signer`. */
const makeCertificate = Effect.fnUntraced(function*(
  commonName: string,
  publicKey: forge.pki.rsa.PublicKey,
  signer: Signer,
  extensions: ReadonlyArray<object>
) {
  const now = yield* Clock.currentTimeMillis
  const made = forge.pki.createCertificate()
  made.publicKey = publicKey
  made.serialNumber = `01${randomBytes(15).toString("hex")}`
  made.validity.notBefore = new Date(now - yearMillis)
  made.validity.notAfter = new Date(now + yearMillis)
  made.setSubject([{ name: "commonName", value: commonName }])
  made.setIssuer([{ name: "commonName", value: signer.name }])
  made.setExtensions([...extensions])
  made.sign(signer.key, forge.md.sha256.create())
  return forge.pki.certificateToPem(made)
})

/** Makes the authority of a factory. */
export const makeFactory = Effect.fnUntraced(function*(name: string): Effect.fn.Return<Factory> {
  const { privateKey, publicKey } = yield* makeKeys
  const signer = { name, key: privateKey }
  const authority = yield* makeCertificate(name, publicKey, signer, [
    { name: "basicConstraints", cA: true, critical: true },
    { name: "keyUsage", keyCertSign: true, critical: true }
  ])
  const issue = Effect.fnUntraced(function*(commonName: string) {
    const keys = yield* makeKeys
    const cert = yield* makeCertificate(commonName, keys.publicKey, signer, [
      { name: "basicConstraints", cA: false, critical: true },
      { name: "keyUsage", digitalSignature: true, critical: true },
      { name: "extKeyUsage", clientAuth: true }
    ])
    return { cert, key: forge.pki.privateKeyToPem(keys.privateKey) }
  })
  return { authority, issue }
})
