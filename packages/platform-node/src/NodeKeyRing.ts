/**
 * A key ring whose master keys are in the configuration or in a file.
 *
 * Several master keys are separated by commas or line ends. The first one seals;
 * all of them open.
 */
import { type DataKey, KeyRing, KeyRingError, type SealedDataKey } from "@device-cloud/core"
import { Effect, Layer, Redacted, Semaphore } from "effect"
import { createCipheriv, createDecipheriv, createHmac, createSecretKey, type KeyObject, randomBytes } from "node:crypto"
import { link, mkdir, open, readFile, rm, stat } from "node:fs/promises"
import { dirname } from "node:path"

/**
 * Master keys from a text: each is 32 bytes in base64, for example of
 * `openssl rand -base64 32`.
 */
export const layerKeys = (keys: Redacted.Redacted): Layer.Layer<KeyRing, KeyRingError> =>
  Layer.effect(
    KeyRing,
    Redacted.isRedacted(keys) && typeof Redacted.value(keys) === "string"
      ? Effect.map(parse(Redacted.value(keys)), (known) => make(Effect.succeed(known), known, Effect.succeed(known)))
      : Effect.die(new TypeError("keys: expected Redacted.make of a text"))
  )

/**
 * Master keys from a file. A file that does not exist is made, for its owner to
 * read alone, when the first data key is made and not before: where secrets are
 * sealed already, a lost file is an error and stays one until it is back.
 */
export const layerFile = (file: string): Layer.Layer<KeyRing, KeyRingError> =>
  Layer.effect(
    KeyRing,
    Effect.gen(function*() {
      const found = yield* load(file)
      const turns = yield* Semaphore.make(1)
      let known = found
      const loadOrMake = Effect.suspend(() =>
        known.length > 0 ? Effect.succeed(known) : Effect.tap(makeFile(file), (made) =>
          Effect.sync(() => {
            known = made
          }))
      )
      // Another process may have made the file since.
      const loadAgain = Effect.tap(load(file), (keys) =>
        Effect.sync(() => {
          known = keys
        }))
      return make(turns.withPermits(1)(loadOrMake), found, turns.withPermits(1)(loadAgain))
    })
  )

interface MasterKey {
  readonly id: string
  readonly key: KeyObject
}

const keyBytes = 32
const ivBytes = 12
const tagBytes = 16
const algorithm = "aes-256-gcm"
const masterPlace = "device-cloud data key"

const derive = (key: Buffer | KeyObject, purpose: string): Buffer => createHmac("sha256", key).update(purpose).digest()

const masterKey = (bytes: Buffer): MasterKey => ({
  id: derive(bytes, "device-cloud master key id").toString("hex").slice(0, 16),
  key: createSecretKey(bytes)
})

const parse = (text: string): Effect.Effect<ReadonlyArray<MasterKey>, KeyRingError> =>
  Effect.suspend(() => {
    const keys = text.split(/[\s,]+/).filter((part) => part !== "")
    const isKey = (part: string) => /^[A-Za-z0-9+/]{43}=$/.test(part) && Buffer.from(part, "base64").length === keyBytes
    return keys.length > 0 && keys.every(isKey)
      ? Effect.succeed(keys.map((part) => masterKey(Buffer.from(part, "base64"))))
      : Effect.fail(
        new KeyRingError({
          message: "expected 32 bytes in base64 (44 characters, as of `openssl rand -base64 32`), " +
            "or several such keys separated by commas"
        })
      )
  })

/** Random initialization vector, tag and ciphertext, in base64url. */
const seal = (key: KeyObject, text: string | Buffer, place: string): string => {
  const iv = randomBytes(ivBytes)
  const cipher = createCipheriv(algorithm, key, iv)
  cipher.setAAD(Buffer.from(place))
  const sealed = typeof text === "string" ? cipher.update(text, "utf8") : cipher.update(text)
  cipher.final()
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64url")
}

const unseal = (key: KeyObject, sealed: string, place: string): Buffer | undefined => {
  const bytes = Buffer.from(sealed, "base64url")
  if (bytes.length < ivBytes + tagBytes) return undefined
  const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, ivBytes))
  decipher.setAAD(Buffer.from(place))
  decipher.setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes))
  const opened = decipher.update(bytes.subarray(ivBytes + tagBytes))
  try {
    decipher.final()
    return opened
  } catch {
    // The tag does not fit.
    return undefined
  }
}

const dataKey = (bytes: Buffer): DataKey => {
  const sealing = createSecretKey(derive(bytes, "seal"))
  const finding = createSecretKey(derive(bytes, "fingerprint"))
  return {
    seal: (text, place) => seal(sealing, text, place),
    open: (sealed, place) => unseal(sealing, sealed, place)?.toString("utf8"),
    fingerprint: (text) => createHmac("sha256", finding).update(text).digest("hex")
  }
}

/**
 * `current`: the keys that seal, made if need be. `known`: those that were there at
 * the start. `latest`: those that are there when one of these is missing.
 */
const make = (
  current: Effect.Effect<ReadonlyArray<MasterKey>, KeyRingError>,
  known: ReadonlyArray<MasterKey>,
  latest: Effect.Effect<ReadonlyArray<MasterKey>, KeyRingError>
) => {
  let all = known
  const first = Effect.map(current, (keys) => {
    all = keys
    return keys[0]!
  })

  const sealUnder = ({ id, key }: MasterKey, bytes: Buffer): SealedDataKey => ({
    masterKeyId: id,
    sealed: seal(key, bytes, `${masterPlace} ${id}`)
  })

  const openBytes = Effect.fnUntraced(
    function*({ masterKeyId, sealed }: SealedDataKey): Effect.fn.Return<Buffer, KeyRingError> {
      if (!all.some(({ id }) => id === masterKeyId)) all = yield* latest
      const master = all.find(({ id }) => id === masterKeyId)
      const bytes = master === undefined ? undefined : unseal(master.key, sealed, `${masterPlace} ${masterKeyId}`)
      if (bytes !== undefined) return bytes
      return yield* new KeyRingError({
        message: `the stored secrets are sealed under master key ${masterKeyId}, which is ` + (all.length === 0
          ? "missing: bring back its file or configure it"
          : `not among those that are given (${all.map(({ id }) => id).join(", ")}): bring it back`)
      })
    }
  )

  return KeyRing.of({
    masterKeyId: Effect.map(first, ({ id }) => id),
    generate: Effect.map(first, (master) => {
      const bytes = randomBytes(keyBytes)
      return { key: dataKey(bytes), sealed: sealUnder(master, bytes) }
    }),
    open: (sealed) => Effect.map(openBytes(sealed), dataKey),
    reseal: (sealed) =>
      Effect.flatMap(openBytes(sealed), (bytes) => Effect.map(first, (master) => sealUnder(master, bytes)))
  })
}

const attempt = <A>(file: string, run: () => Promise<A>) =>
  Effect.tryPromise({
    try: run,
    catch: (cause) =>
      new KeyRingError({ message: `the key file ${file} cannot be read or made (${String(cause)})`, cause })
  })

/** The keys of the file; none if there is no file. */
const load = Effect.fnUntraced(function*(file: string) {
  const text = yield* attempt(file, () =>
    readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined
      throw error
    }))
  if (text === undefined) return []
  const { mode } = yield* attempt(file, () => stat(file))
  if ((mode & 0o077) !== 0) {
    yield* Effect.logWarning(`Others than its owner may read the key file ${file}: chmod 600 it`)
  }
  return yield* Effect.mapError(
    parse(text),
    ({ message }) => new KeyRingError({ message: `the key file ${file}: ${message}` })
  )
})

/** Makes the file with a new key, whole or not at all. Of several processes one makes it, and all read it. */
const makeFile = Effect.fnUntraced(function*(file: string) {
  const made = `${file}.${randomBytes(6).toString("hex")}`
  yield* attempt(file, async () => {
    await mkdir(dirname(file), { recursive: true })
    const handle = await open(made, "wx", 0o600)
    try {
      await handle.writeFile(`${randomBytes(keyBytes).toString("base64")}\n`)
      await handle.sync()
    } finally {
      await handle.close()
    }
    try {
      await link(made, file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error
    } finally {
      await rm(made, { force: true })
    }
    const directory = await open(dirname(file), "r")
    try {
      await directory.sync()
    } finally {
      await directory.close()
    }
  })
  return yield* load(file)
})
