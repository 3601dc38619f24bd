/**
 * Stored responses are sealed under the access key of their caller, which the
 * cloud does not keep: whoever reads the storage reads no response, and a
 * response may show secrets (docs/decisions/0053-idempotency-keys-keep-no-secrets.md).
 */
import { Effect, Redacted, Result } from "effect"
import { Base64, Hex } from "effect/encoding"
import { Mac } from "../kernel/Mac.ts"
import { Randomness } from "../kernel/Randomness.ts"
import type { RequestKey } from "./IdempotencyStore.ts"

/** The size of a block of AES, of its keys here, and of what makes each sealing different. */
const blockBytes = 16

/** Seals and opens the responses to one request. */
export interface Seal {
  readonly close: (text: string) => Effect.Effect<string>
  readonly open: (sealed: string) => string
}

/** Makes a function from request and access key to its seal. */
export const makeSeal = Effect.gen(function*() {
  const random = yield* Randomness
  const mac = yield* Mac

  return (request: RequestKey, accessKey: Redacted.Redacted): Seal => {
    const derived = mac.sign("hmacsha256", Redacted.value(accessKey), `response ${request.projectId} ${request.key}`)
    const key = Result.getOrThrow(Hex.decode(derived)).subarray(0, blockBytes)
    /** AES-128 in OFB mode: CBC over zeros is its key stream. Applied twice, it returns the bytes. */
    const mask = (initialization: Uint8Array, bytes: Uint8Array): Uint8Array => {
      const blocks = new Uint8Array(Math.ceil(bytes.length / blockBytes) * blockBytes)
      const stream = mac.aes128Cbc(key, initialization, blocks)
      return bytes.map((byte, i) => byte ^ stream[i]!)
    }
    return {
      close: (text) =>
        Effect.sync(() => {
          const initialization = random.bytes(blockBytes)
          const masked = mask(initialization, new TextEncoder().encode(text))
          const sealed = new Uint8Array(blockBytes + masked.length)
          sealed.set(initialization)
          sealed.set(masked, blockBytes)
          return Base64.encode(sealed)
        }),
      open: (sealed) => {
        const bytes = Result.getOrThrow(Base64.decode(sealed))
        return new TextDecoder().decode(mask(bytes.subarray(0, blockBytes), bytes.subarray(blockBytes)))
      }
    }
  }
})
