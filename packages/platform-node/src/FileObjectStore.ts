/**
 * Keeps objects as files: a directory for each object, with the content and the
 * facts about the object.
 */
import { isObjectId, ObjectStore, ObjectTooLarge, type StoredObject, StoreError } from "@device-cloud/core"
import * as NodeStream from "@effect/platform-node/NodeStream"
import { Effect, Layer, Option, Predicate, Stream } from "effect"
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises"
import { join } from "node:path"

/** The directory of objects that are not whole yet, or no longer. */
const uploads = ".uploads"
const contentFile = "content"
const factsFile = "object.json"

/** An error of the system names its file, and with it the address of an object, which is a secret. */
const withoutPath = (cause: unknown): unknown =>
  Predicate.hasProperty(cause, "code") && Predicate.hasProperty(cause, "syscall")
    ? new Error(`${String(cause.syscall)}: ${String(cause.code)}`)
    : cause

const isMissing = (error: unknown): boolean => Predicate.hasProperty(error, "code") && error.code === "ENOENT"

/** The disk is full, fails or is read-only, or there are no more files: what may pass. */
const passing: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT", "EROFS", "EIO", "EMFILE", "ENFILE"])

const mayPass = (error: unknown): boolean => Predicate.hasProperty(error, "code") && passing.has(error.code)

const failedWith = (operation: string) => (cause: unknown) =>
  new StoreError({ operation, retryable: mayPass(cause), cause: withoutPath(cause) })

const attempt = <A>(operation: string, run: () => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: failedWith(operation) })

/** Makes a rename in the directory survive a crash. */
const syncDirectory = async (directory: string): Promise<void> => {
  const handle = await open(directory, "r")
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const writeSynced = async (file: string, text: string): Promise<void> => {
  const handle = await open(file, "wx", 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const make = Effect.fnUntraced(function*(directory: string) {
  const uploading = join(directory, uploads)
  // Removes the objects that a crash has left unfinished.
  yield* Effect.tryPromise({
    try: async () => {
      await mkdir(uploading, { recursive: true, mode: 0o700 })
      for (const name of await readdir(uploading)) await rm(join(uploading, name), { recursive: true, force: true })
    },
    catch: (cause) => new StoreError({ operation: "ObjectStore.open", retryable: false, cause })
  })

  const writeContent = Effect.fnUntraced(
    function*<E>(file: string, content: Stream.Stream<Uint8Array, E>, maximum: number) {
      const handle = yield* Effect.acquireRelease(
        attempt("ObjectStore.write", () => open(file, "wx", 0o600)),
        (handle) => Effect.promise(() => handle.close())
      )
      const [md5, sha256] = [createHash("md5"), createHash("sha256")]
      let size = 0
      yield* Stream.runForEach(content, (chunk): Effect.Effect<void, ObjectTooLarge | StoreError> => {
        size += chunk.length
        if (size > maximum) return Effect.fail(new ObjectTooLarge({ maximum }))
        md5.update(chunk)
        sha256.update(chunk)
        return attempt("ObjectStore.write", () => handle.writeFile(chunk))
      })
      yield* attempt("ObjectStore.write", () => handle.sync())
      return { size, md5: md5.digest("hex"), sha256: sha256.digest("hex") }
    },
    Effect.scoped
  )

  return ObjectStore.of({
    write: (draft, content, maximum) => {
      const temporary = join(uploading, draft.objectId)
      return Effect.gen(function*() {
        yield* attempt("ObjectStore.write", () => mkdir(temporary, { mode: 0o700 }))
        const object: StoredObject = {
          ...draft,
          ...yield* writeContent(join(temporary, contentFile), content, maximum)
        }
        yield* attempt("ObjectStore.write", async () => {
          await writeSynced(join(temporary, factsFile), JSON.stringify(object))
          await syncDirectory(temporary)
          await rename(temporary, join(directory, object.objectId))
          await syncDirectory(directory)
        })
        return object
      }).pipe(
        Effect.onError(() => Effect.promise(() => rm(temporary, { recursive: true, force: true })))
      )
    },
    find: (objectId) =>
      isObjectId(objectId)
        ? attempt("ObjectStore.find", async () => {
          try {
            const text = await readFile(join(directory, objectId, factsFile), "utf8")
            return Option.some(JSON.parse(text) as StoredObject)
          } catch (error) {
            if (isMissing(error)) return Option.none()
            throw error
          }
        })
        : Effect.succeedNone,
    read: ({ objectId, size }, range) =>
      size === 0
        ? Stream.empty
        : NodeStream.fromReadable({
          evaluate: () => createReadStream(join(directory, objectId, contentFile), { ...range }),
          onError: failedWith("ObjectStore.read")
        }),
    remove: (objectId) =>
      isObjectId(objectId)
        ? attempt("ObjectStore.remove", async () => {
          // A rename succeeds once, however many try. What a crash leaves of it is removed at the next start.
          const removed = join(uploading, `${objectId}.removed`)
          try {
            await rename(join(directory, objectId), removed)
          } catch (error) {
            if (isMissing(error)) return false
            throw error
          }
          await syncDirectory(directory)
          await rm(removed, { recursive: true, force: true })
          return true
        })
        : Effect.succeed(false)
  })
})

/** Keeps objects in `directory`, which it creates. Only one process may use the directory at a time. */
export const layer = (options: { readonly directory: string }): Layer.Layer<ObjectStore, StoreError> =>
  Layer.effect(
    ObjectStore,
    typeof options.directory === "string"
      ? make(options.directory)
      : Effect.die(new TypeError(`directory: expected the path of a directory, not ${String(options.directory)}`))
  )
