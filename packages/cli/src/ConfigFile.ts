/**
 * `~/.config/device-cloud/config.json`: servers by name, each with its access key.
 */
import { Config, Effect, FileSystem, Option, Path, Redacted, Schema } from "effect"
import { failure } from "./CommandFailure.ts"

/** A server of the file. */
export const Profile = Schema.Struct({ url: Schema.String, key: Schema.String })
export interface Profile extends Schema.Schema.Type<typeof Profile> {}

const Content = Schema.fromJsonString(Schema.Struct({ profiles: Schema.Record(Schema.String, Profile) }))
const decode = Schema.decodeEffect(Content)
const encode = Schema.encodeEffect(Content)

/** The profile that counts when nobody names one. */
export const defaultProfile = "default"

/** A variable of the environment. An empty one is none. */
export const environment = (name: string) =>
  Config.option(Config.String(name)).pipe(Effect.orDie, Effect.map(Option.filter((text) => text !== "")))

/** The path of the file: below `XDG_CONFIG_HOME`, else below `HOME`. */
export const path = Effect.gen(function*() {
  const { join } = yield* Path.Path
  const userProfile = yield* environment("USERPROFILE")
  const home = Option.orElse(yield* environment("HOME"), () => userProfile)
  const directory = Option.orElse(
    yield* environment("XDG_CONFIG_HOME"),
    () => Option.map(home, (home) => join(home, ".config"))
  )
  return Option.isSome(directory)
    ? join(directory.value, "device-cloud", "config.json")
    : yield* failure("Neither HOME nor XDG_CONFIG_HOME says where the configuration file is")
})

/** The profiles of the file by name. Without a file, or a place for it: none. */
export const load = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const file = yield* Effect.orElseSucceed(path, () => undefined)
  if (file === undefined) return new Map<string, Profile>()
  const text = yield* fs.readFileString(file).pipe(
    Effect.catchReason("PlatformError", "NotFound", () => Effect.void),
    Effect.mapError((error) => failure(error.message))
  )
  if (text === undefined) return new Map<string, Profile>()
  const { profiles } = yield* Effect.mapError(
    decode(text),
    () =>
      failure(`${file} is not as \`device-cloud init\` writes it: expected {"profiles": {"default": {"url", "key"}}}`)
  )
  return new Map(Object.entries(profiles))
})

/** Puts a profile into the file, which its owner alone can read. Returns the path of the file. */
export const save = Effect.fnUntraced(function*(name: string, url: string, key: Redacted.Redacted) {
  const fs = yield* FileSystem.FileSystem
  const { dirname } = yield* Path.Path
  const file = yield* path
  const text = yield* Effect.orDie(
    encode({ profiles: Object.fromEntries((yield* load).set(name, { url, key: Redacted.value(key) })) })
  )
  yield* Effect.gen(function*() {
    yield* fs.makeDirectory(dirname(file), { recursive: true, mode: 0o700 })
    yield* fs.writeFileString(`${file}.new`, `${JSON.stringify(JSON.parse(text), null, 2)}\n`, { mode: 0o600 })
    // A file that was there before keeps its mode when it is written.
    yield* fs.chmod(`${file}.new`, 0o600)
    yield* fs.rename(`${file}.new`, file)
  }).pipe(Effect.mapError((error) => failure(error.message)))
  return file
})
