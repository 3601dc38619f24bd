/**
 * The first management key when the configuration has none: made once and kept in
 * the data directory.
 */
import { AccessKeys } from "@device-cloud/core"
import { Console, Effect, Redacted, Schema } from "effect"
import { mkdir, readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"

/** The file of the key cannot be read or written. */
export class AdminKeyError extends Schema.TaggedError<AdminKeyError>()("AdminKeyError", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/**
 * Reads the key in `dataDir`. If it does not exist, makes and keeps one, which `tell`
 * prints, this once. It goes with the scope if it was not told: a server that does not
 * come to serve leaves no key that nobody has seen.
 */
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
  if (kept !== undefined) return { key: Redacted.make(kept.trim()), origin: file, tell: Effect.void }
  const made = yield* AccessKeys.use((accessKeys) => accessKeys.generate)
  const key = Redacted.value(made)
  yield* attempt(async () => {
    await mkdir(dataDir, { recursive: true })
    await writeFile(file, `${key}\n`, { mode: 0o600, flag: "wx", flush: true })
  })
  let isTold = false
  yield* Effect.addFinalizer(() => isTold ? Effect.void : Effect.ignore(attempt(() => rm(file))))
  const tell = Effect.andThen(
    Console.log(JSON.stringify({ event: "admin_key", key, file })),
    Effect.sync(() => {
      isTold = true
    })
  )
  return { key: made, origin: file, tell }
})
