/**
 * Makes identifiers and secrets from the cryptographic randomness of the platform.
 */
import { Context, Effect, Layer } from "effect"
import { Randomness } from "./Randomness.ts"

export class Identifiers extends Context.Service<Identifiers, {
  /** Makes a product key: 11 characters `[A-Za-z0-9]`, the first a letter. */
  readonly productKey: Effect.Effect<string>
  /** Makes a product secret: 16 characters `[a-z0-9]`. */
  readonly productSecret: Effect.Effect<string>
  /** Makes a device id: 20 characters `[A-Za-z0-9]`. */
  readonly deviceId: Effect.Effect<string>
  /** Makes a device name: 20 characters `[A-Za-z0-9]`. */
  readonly deviceName: Effect.Effect<string>
  /** Makes a device secret: 32 characters `[a-z0-9]`. */
  readonly deviceSecret: Effect.Effect<string>
  /** Makes `count` device ids, device names and device secrets. */
  readonly triples: (count: number) => Effect.Effect<
    ReadonlyArray<{ readonly deviceId: string; readonly deviceName: string; readonly deviceSecret: string }>
  >
  /** Makes the id of an object: 32 characters `[A-Za-z0-9]`. */
  readonly objectId: Effect.Effect<string>
  /** Makes a key of 16 bytes as text: 32 characters `[0-9a-f]`. */
  readonly hexKey: Effect.Effect<string>
  /** Makes a project id: 12 characters `[a-z0-9]`. */
  readonly projectId: Effect.Effect<string>
  /** Makes the id of an access key: 12 characters `[A-Za-z0-9]`. */
  readonly accessKeyId: Effect.Effect<string>
  /** Makes the beginning of ids that a node numbers by itself: 16 characters `[A-Za-z0-9]`. */
  readonly prefix: Effect.Effect<string>
  /** Makes the id of a scene or a timer: 20 characters `[A-Za-z0-9]`. */
  readonly sceneId: Effect.Effect<string>
  /** Makes the id of a certificate authority: 20 characters `[A-Za-z0-9]`. */
  readonly authorityId: Effect.Effect<string>
  /** Makes the key that signs webhooks: 32 characters `[A-Za-z0-9]`. */
  readonly webhookKey: Effect.Effect<string>
}>()("@device-cloud/core/kernel/Identifiers") {
  static readonly layer: Layer.Layer<Identifiers, never, Randomness> = Layer.effect(
    Identifiers,
    Effect.suspend(() => make)
  )
}

const lower = "abcdefghijklmnopqrstuvwxyz"
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + lower
const digits = "0123456789"

const encoder = new TextEncoder()
const decoder = new TextDecoder()

const make = Effect.gen(function*() {
  const random = yield* Randomness

  /** Makes evenly distributed text: drops the bytes that would favour some characters. */
  const text = (alphabet: string, length: number): Effect.Effect<string> => {
    const characters = encoder.encode(alphabet)
    const limit = 256 - (256 % characters.length)
    return Effect.sync(() => {
      const result = new Uint8Array(length)
      let made = 0
      while (made < length) {
        for (const byte of random.bytes(length - made)) {
          if (byte < limit) result[made++] = characters[byte % characters.length]!
        }
      }
      return decoder.decode(result)
    })
  }

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
    prefix: text(letters + digits, 16),
    sceneId: text(letters + digits, 20),
    authorityId: text(letters + digits, 20),
    webhookKey: text(letters + digits, 32)
  })
})
