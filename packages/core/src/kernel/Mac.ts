/**
 * Port: the platform's message authentication codes, and what else proofs of
 * devices are made of.
 */
import { Context, Schema } from "effect"

/**
 * `aescmac` is AES-CMAC-PRF-128 (RFC 4615): the secret is the key as it is when
 * it has 16 bytes, otherwise its AES-CMAC under the zero key.
 */
export const SignMethod = Schema.Literals(["hmacmd5", "hmacsha1", "hmacsha256", "aescmac"])
export type SignMethod = typeof SignMethod.Type

export class Mac extends Context.Service<Mac, {
  /** The code of `text` under `secret` (both UTF-8), as lower-case hex. */
  readonly sign: (method: SignMethod, secret: string, text: string) => string
  readonly sha256: (bytes: Uint8Array) => Uint8Array
  /** AES-128 in CBC mode, without padding: `key` and `initialization` of 16 bytes, `bytes` of whole blocks. */
  readonly aes128Cbc: (key: Uint8Array, initialization: Uint8Array, bytes: Uint8Array) => Uint8Array
}>()("@device-cloud/core/kernel/Mac") {}

/** Equality in a time that depends on the lengths only. */
export const equalInConstantTime = (a: string, b: string): boolean => {
  if (a.length !== b.length) return false
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= a.charCodeAt(i) ^ b.charCodeAt(i)
  return difference === 0
}
