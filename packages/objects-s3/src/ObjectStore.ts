/**
 * Objects on an S3-compatible object storage: the content under `<id>/content`, and
 * what is known of it under `<id>/object.json`, which is written last and makes the
 * object whole.
 */
import {
  inParts,
  isObjectId,
  type NewObject,
  ObjectStore,
  ObjectTooLarge,
  type StoredObject,
  StoreError
} from "@device-cloud/core"
import { Clock, Effect, Layer, Option, Semaphore, Stream } from "effect"
import { createHash } from "node:crypto"
import { Bucket, type BucketOptions } from "./Bucket.ts"

const partSize = 8 * 1024 * 1024

const contentOf = (objectId: string) => `${objectId}/content`
const factsOf = (objectId: string) => `${objectId}/object.json`

/**
 * Keeps objects in a bucket. A part of 8 MiB of each upload is in memory. Uploads that
 * a crash ends leave parts behind: let the bucket abort incomplete multipart uploads
 * after a day.
 */
export const layer = (options: BucketOptions): Layer.Layer<ObjectStore> =>
  Layer.effect(ObjectStore, Effect.map(Clock.Clock, (clock) => make(new Bucket(options, clock))))

const make = (bucket: Bucket) => {
  // The protocol does not tell whether it was this deletion that has removed something.
  const removing = Semaphore.makeUnsafe(1)

  /** In one request, or in parts if there are several. */
  const writeContent = Effect.fnUntraced(
    function*<E>(key: string, content: Stream.Stream<Uint8Array, E>) {
      let held: Uint8Array = new Uint8Array()
      let upload: { readonly id: string; readonly tags: Array<string> } | undefined
      const storeHeld = Effect.gen(function*() {
        upload ??= { id: yield* bucket.beginParts(key), tags: [] }
        upload.tags.push(yield* bucket.putPart(key, upload.id, upload.tags.length + 1, held))
      })
      yield* Effect.gen(function*() {
        yield* content.pipe(
          inParts(partSize),
          Stream.runForEach((part) => {
            const isFirst = held.length === 0
            return Effect.andThen(isFirst ? Effect.void : storeHeld, Effect.sync(() => held = part))
          })
        )
        if (upload === undefined) return yield* bucket.put(key, held)
        yield* storeHeld
        yield* bucket.endParts(key, upload.id, upload.tags)
      }).pipe(
        Effect.onError(() => upload === undefined ? Effect.void : Effect.ignore(bucket.abortParts(key, upload.id)))
      )
    }
  )

  const write = Effect.fnUntraced(
    function*<E>(draft: NewObject, content: Stream.Stream<Uint8Array, E>, maximum: number) {
      const [md5, sha256] = [createHash("md5"), createHash("sha256")]
      let size = 0
      const counted = Stream.tap(content, (chunk) => {
        size += chunk.length
        if (size > maximum) return Effect.fail(new ObjectTooLarge({ maximum }))
        md5.update(chunk)
        sha256.update(chunk)
        return Effect.void
      })
      return yield* Effect.gen(function*() {
        yield* writeContent(contentOf(draft.objectId), counted)
        const object: StoredObject = { ...draft, size, md5: md5.digest("hex"), sha256: sha256.digest("hex") }
        // The service may have stored them and not said so.
        yield* bucket.put(factsOf(draft.objectId), Buffer.from(JSON.stringify(object))).pipe(
          Effect.onError(() => Effect.ignore(bucket.remove(factsOf(draft.objectId))))
        )
        return object
      }).pipe(Effect.onError(() => Effect.ignore(bucket.remove(contentOf(draft.objectId)))))
    }
  )

  const find = (objectId: string) =>
    isObjectId(objectId)
      ? Effect.flatMap(bucket.text(factsOf(objectId)), (facts) =>
        Effect.try({
          try: () => Option.map(facts, (text) => JSON.parse(text) as StoredObject),
          // A proxy has answered in the place of the service.
          catch: () =>
            new StoreError({
              operation: "ObjectStore.find",
              retryable: true,
              cause: "The object storage answers no JSON"
            })
        }))
      : Effect.succeedNone

  return ObjectStore.of({
    write,
    find,
    read: (object, range) => object.size === 0 ? Stream.empty : bucket.read(contentOf(object.objectId), range),
    remove: (objectId) =>
      Effect.gen(function*() {
        if (Option.isNone(yield* find(objectId))) return false
        // The facts last: whoever tries again after a failure still finds them.
        yield* bucket.remove(contentOf(objectId))
        yield* bucket.remove(factsOf(objectId))
        return true
      }).pipe(removing.withPermits(1))
  })
}
