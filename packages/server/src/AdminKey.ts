/**
 * The first management key when the configuration has none: made once and kept in
 * the data directory.
 */
import { AccessKeys } from "@device-cloud/core"
import { Console, Effect, Redacted, Schema } from "effect"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"

/** The file of the key cannot be read or written. */
export class AdminKeyError extends Schema.TaggedError<AdminKeyError>()("AdminKeyError", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

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
  const key = Redacted.value(yield* AccessKeys.use((accessKeys) => accessKeys.generate))
  yield* attempt(async () => {
    await mkdir(dataDir, { recursive: true })
    await writeFile(file, `${key}\n`, { mode: 0o600, flag: "wx", flush: true })
  })
  yield* Console.log(JSON.stringify({ event: "admin_key", key, file }))
  return { key: Redacted.make(key), origin: file }
})
