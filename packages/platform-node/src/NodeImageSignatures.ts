/**
 * Checks signatures of firmware images with `node:crypto`.
 */
import { type ImageKey, ImageSignatures, type SigningAlgorithm } from "@device-cloud/core"
import { Effect, Layer, Option, Stream } from "effect"
import { createHash, createPublicKey, createVerify, type KeyObject } from "node:crypto"

/** A private key holds a public one, but has no place in the cloud. */
const form = /^\s*-----BEGIN PUBLIC KEY-----[\sA-Za-z0-9+/=]+-----END PUBLIC KEY-----\s*$/

const curves = new Set(["prime256v1", "secp384r1"])

const algorithmOf = ({ asymmetricKeyDetails, asymmetricKeyType }: KeyObject): SigningAlgorithm | undefined => {
  const { modulusLength = 0, namedCurve = "" } = asymmetricKeyDetails ?? {}
  if (asymmetricKeyType === "rsa" && modulusLength >= 2048 && modulusLength <= 8192) return "RSA-SHA256"
  return asymmetricKeyType === "ec" && curves.has(namedCurve) ? "ECDSA-SHA256" : undefined
}

const readKey = (pem: string): Option.Option<ImageKey> => {
  if (!form.test(pem)) return Option.none()
  try {
    const key = createPublicKey(pem)
    const algorithm = algorithmOf(key)
    if (algorithm === undefined) return Option.none()
    const keyId = createHash("sha256").update(key.export({ type: "spki", format: "der" })).digest("hex")
    return Option.some({ keyId, algorithm, publicKey: key.export({ type: "spki", format: "pem" }).toString() })
  } catch {
    return Option.none()
  }
}

export const layer: Layer.Layer<ImageSignatures> = Layer.succeed(ImageSignatures, {
  readKey,
  verify: ({ publicKey }, signature, content) =>
    Effect.suspend(() => {
      const check = createVerify("sha256")
      return Effect.map(
        Stream.runForEach(content, (chunk) => Effect.sync(() => check.update(chunk))),
        () => check.verify(publicKey, signature)
      )
    })
})
