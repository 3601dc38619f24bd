/**
 * The first management key when the configuration has none: made once and kept in
 * the data directory.
 */
import { Console, Crypto, Effect, Redacted, Schema } from "effect"
import { Base64Url } from "effect/encoding"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"

/** The file of the key cannot be read or written. */
export class AdminKeyError extends Schema.TaggedError<AdminKeyError>()("AdminKeyError", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

const generate = Effect.gen(function*() {
  const crypto = yield* Crypto.Crypto
  const id = yield* Effect.forEach(
    Array.from({ length: 12 }),
    () => crypto.randomIntBetween(0, characters.length, { halfOpen: true })
  )
  const secret = yield* Effect.orDie(crypto.randomBytes(32))
  return `dck_${id.map((position) => characters[position]).join("")}_${Base64Url.encode(secret)}`
})

/** Reads the key in `dataDir`. If it does not exist, makes and keeps a key and prints it, this once. */
export const loadOrMake = Effect.fnUntraced(function*(dataDir: string) {
  const file = join(dataDir, "admin-key")
  const attempt = <A>(run: () => Promise<A>) =>
    Effect.tryPromise({
      try: run,
      catch: (cause) => new AdminKeyError({ message: `The admin key in ${file} cannot be read or kept`, cause })
    })
  const kept = yield* attempt(() =>
    readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined
      throw error
    })
  )
  if (kept !== undefined) return { key: Redacted.make(kept.trim()), origin: file }
  const key = yield* generate
  yield* attempt(async () => {
    await mkdir(dataDir, { recursive: true })
    await writeFile(file, `${key}\n`, { mode: 0o600, flag: "wx" })
  })
  yield* Console.log(JSON.stringify({ event: "admin_key", key, file }))
  return { key: Redacted.make(key), origin: file }
})
