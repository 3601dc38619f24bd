/**
 * New identifiers and secrets, all from a cryptographic source.
 */
import { Context, Crypto, Effect, Layer } from "effect"

export class Identifiers extends Context.Service<Identifiers, {
  /** 11 characters `[A-Za-z0-9]`, the first a letter. */
  readonly productKey: Effect.Effect<string>
  /** 16 characters `[a-z0-9]`. */
  readonly productSecret: Effect.Effect<string>
  /** 20 characters `[A-Za-z0-9]`. */
  readonly deviceId: Effect.Effect<string>
  /** 20 characters `[A-Za-z0-9]`. */
  readonly deviceName: Effect.Effect<string>
  /** 32 characters `[a-z0-9]`. */
  readonly deviceSecret: Effect.Effect<string>
  /** Many of the three at once. */
  readonly triples: (count: number) => Effect.Effect<
    ReadonlyArray<{ readonly deviceId: string; readonly deviceName: string; readonly deviceSecret: string }>
  >
  /** 32 characters `[A-Za-z0-9]`. */
  readonly objectId: Effect.Effect<string>
  /** 32 characters `[0-9a-f]`. */
  readonly hexKey: Effect.Effect<string>
  /** 12 characters `[a-z0-9]`. */
  readonly projectId: Effect.Effect<string>
  /** 12 characters `[A-Za-z0-9]`. */
  readonly accessKeyId: Effect.Effect<string>
  /** 16 characters `[A-Za-z0-9]`. */
  readonly nodeId: Effect.Effect<string>
  /** 20 characters `[A-Za-z0-9]`; also names a timer. */
  readonly sceneId: Effect.Effect<string>
  /** 32 characters `[A-Za-z0-9]`. */
  readonly webhookKey: Effect.Effect<string>
}>()("@device-cloud/core/kernel/Identifiers") {
  static readonly layer: Layer.Layer<Identifiers, never, Crypto.Crypto> = Layer.effect(
    Identifiers,
    Effect.suspend(() => make)
  )
}

const lower = "abcdefghijklmnopqrstuvwxyz"
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + lower
const digits = "0123456789"

/** What a platform gives at once. */
const maxRandomBytes = 65_536

const make = Effect.gen(function*() {
  const crypto = yield* Crypto.Crypto

  /** Evenly distributed: bytes that would favour some characters are thrown away. */
  const text = Effect.fnUntraced(function*(alphabet: string, length: number) {
    const limit = 256 - (256 % alphabet.length)
    let result = ""
    while (result.length < length) {
      for (const byte of yield* crypto.randomBytes(Math.min(length - result.length, maxRandomBytes))) {
        if (byte < limit) result += alphabet[byte % alphabet.length]
      }
    }
    return result
  }, Effect.orDie)

  return Identifiers.of({
    productKey: Effect.map(
      Effect.all([text(letters, 1), text(letters + digits, 10)]),
      ([first, rest]) => first + rest
    ),
    productSecret: text(lower + digits, 16),
    deviceId: text(letters + digits, 20),
    deviceName: text(letters + digits, 20),
    deviceSecret: text(lower + digits, 32),
    triples: (count) =>
      Effect.map(
        Effect.all([text(letters + digits, 40 * count), text(lower + digits, 32 * count)]),
        ([names, all]) =>
          Array.from({ length: count }, (_, i) => ({
            deviceId: names.slice(40 * i, 40 * i + 20),
            deviceName: names.slice(40 * i + 20, 40 * i + 40),
            deviceSecret: all.slice(32 * i, 32 * i + 32)
          }))
      ),
    objectId: text(letters + digits, 32),
    hexKey: text(digits + "abcdef", 32),
    projectId: text(lower + digits, 12),
    accessKeyId: text(letters + digits, 12),
    nodeId: text(letters + digits, 16),
    sceneId: text(letters + digits, 20),
    webhookKey: text(letters + digits, 32)
  })
})
