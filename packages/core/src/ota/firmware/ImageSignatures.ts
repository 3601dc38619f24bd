/**
 * Port: checks the signatures of firmware images.
 */
import { Context, type Effect, type Option, Schema, type Stream } from "effect"

/**
 * How an image is signed: RSA (PKCS#1 v1.5) or ECDSA (DER), each over the SHA-256
 * of the file, as `openssl dgst -sha256 -sign` does it.
 */
export const SigningAlgorithm = Schema.Literals(["RSA-SHA256", "ECDSA-SHA256"])
export type SigningAlgorithm = typeof SigningAlgorithm.Type

/** A public key that images can be signed for. */
export interface ImageKey {
  /** SHA-256 of the key (DER of its SubjectPublicKeyInfo), lower-case hex. */
  readonly keyId: string
  readonly algorithm: SigningAlgorithm
  /** PEM. */
  readonly publicKey: string
}

export class ImageSignatures extends Context.Service<ImageSignatures, {
  /**
   * Reads a public key in PEM: RSA of 2,048 to 8,192 bits, or ECDSA on P-256 or
   * P-384. None: the text holds no such key, or holds a private one.
   */
  readonly readKey: (pem: string) => Option.Option<ImageKey>
  /** Returns whether the key has signed the content, of which it holds one chunk at a time. */
  readonly verify: <E>(
    key: ImageKey,
    signature: Uint8Array,
    content: Stream.Stream<Uint8Array, E>
  ) => Effect.Effect<boolean, E>
}>()("@device-cloud/core/ota/firmware/ImageSignatures") {}
