/**
 * Port: the cryptographic functions that check and make proofs of devices
 * (docs/protocol/signatures.md).
 */
import { Context, Schema } from "effect"

/**
 * The message authentication codes. `aescmac` is AES-CMAC-PRF-128 (RFC 4615): a
 * secret of 16 bytes is the key; of any other secret, its AES-CMAC under the zero
 * key is the key.
 */
export const SignMethod = Schema.Literals(["hmacmd5", "hmacsha1", "hmacsha256", "aescmac"])
export type SignMethod = typeof SignMethod.Type

export class Mac extends Context.Service<Mac, {
  /** Returns the code of `text` under `secret`, both in UTF-8, as lower-case hex. */
  readonly sign: (method: SignMethod, secret: string, text: string) => string
  /** Returns the SHA-256 of the bytes: 32 bytes. */
  readonly sha256: (bytes: Uint8Array) => Uint8Array
  /**
   * Encrypts with AES-128 in CBC mode, without padding. `key` and
   * `initialization` have 16 bytes; the length of `bytes` is a multiple of 16.
   */
  readonly aes128Cbc: (key: Uint8Array, initialization: Uint8Array, bytes: Uint8Array) => Uint8Array
}>()("@device-cloud/core/kernel/Mac") {}

/** Whether two texts are equal, in a time that depends only on their lengths. */
export const equalInConstantTime = (a: string, b: string): boolean => {
  if (a.length !== b.length) return false
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i)
  return difference === 0
}
