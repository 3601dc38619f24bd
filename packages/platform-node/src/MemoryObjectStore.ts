/**
 * An `ObjectStore` in memory.
 */
import { ObjectStore, ObjectTooLarge, type StoredObject } from "@device-cloud/core"
import { Effect, Layer, Option, Stream } from "effect"
import { createHash } from "node:crypto"

const make = Effect.sync(() => {
  const objects = new Map<string, { readonly object: StoredObject; readonly content: Buffer }>()
  return ObjectStore.of({
    write: (draft, content, maximum) =>
      Effect.gen(function*() {
        const [md5, sha256] = [createHash("md5"), createHash("sha256")]
        const chunks: Array<Uint8Array> = []
        let size = 0
        yield* Stream.runForEach(content, (chunk): Effect.Effect<void, ObjectTooLarge> => {
          size += chunk.length
          if (size > maximum) return Effect.fail(new ObjectTooLarge({ maximum }))
          md5.update(chunk)
          sha256.update(chunk)
          chunks.push(chunk)
          return Effect.void
        })
        const object: StoredObject = { ...draft, size, md5: md5.digest("hex"), sha256: sha256.digest("hex") }
        objects.set(object.objectId, { object, content: Buffer.concat(chunks) })
        return object
      }),
    find: (objectId) =>
      Effect.sync(() => Option.map(Option.fromUndefinedOr(objects.get(objectId)), ({ object }) => object)),
    read: ({ objectId, size }, { end, start } = { start: 0, end: size - 1 }) =>
      Stream.suspend(() => {
        const content = objects.get(objectId)?.content.subarray(start, end + 1)
        return content === undefined ? Stream.empty : Stream.succeed(content)
      }),
    remove: (objectId) => Effect.sync(() => objects.delete(objectId))
  })
})

/** Keeps objects in memory, until the layer closes. */
export const layer: Layer.Layer<ObjectStore> = Layer.effect(ObjectStore, make)
