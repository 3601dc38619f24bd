/**
 * Manages objects: files that applications upload (docs/api/objects.md).
 */
import { Clock, Context, type Crypto, Effect, Layer, Option, type Stream } from "effect"
import { Identifiers } from "../kernel/Identifiers.ts"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import { ObjectStore } from "./ObjectStore.ts"
import {
  type ByteRange,
  defaultMaxObjectSize,
  ObjectNotFound,
  type ObjectTooLarge,
  safeFileName,
  type StoredObject
} from "./StoredObject.ts"

export class Objects extends Context.Service<Objects, {
  /**
   * Stores content as a new object. `safeFileName` makes a safe name of
   * `fileName`. Fails with `ObjectTooLarge` above `MaxObjectSize` bytes.
   */
  readonly upload: <E>(
    projectId: ProjectId,
    fileName: string,
    content: Stream.Stream<Uint8Array, E>
  ) => Effect.Effect<StoredObject, E | ObjectTooLarge | StoreError>
  /** Returns the object. The id is the only protection: `get` looks in all projects. */
  readonly get: (objectId: string) => Effect.Effect<StoredObject, ObjectNotFound | StoreError>
  /** Streams the bytes of the object, or those in `range`. */
  readonly read: (object: StoredObject, range?: ByteRange) => Stream.Stream<Uint8Array, StoreError>
  /** Removes an object of the project. */
  readonly remove: (projectId: ProjectId, objectId: string) => Effect.Effect<void, ObjectNotFound | StoreError>
}>()("@device-cloud/core/object/Objects") {
  /**
   * Not a part of `DeviceCloud.layer`: an application without objects needs no
   * store for them (docs/decisions/0017-objects-beside-the-cloud.md).
   */
  static readonly layer: Layer.Layer<Objects, never, ObjectStore | Crypto.Crypto> = Layer.effect(
    Objects,
    Effect.suspend(() => make)
  ).pipe(
    Layer.provide(Identifiers.layer)
  )
}

/** Bytes that one object may have, at most. Default: 512 MiB. */
export const MaxObjectSize = Context.Reference<number>("@device-cloud/core/object/MaxObjectSize", {
  defaultValue: () => defaultMaxObjectSize
})

const make = Effect.gen(function*() {
  const store = yield* ObjectStore
  const identifiers = yield* Identifiers
  const maximum = yield* MaxObjectSize

  const upload = Effect.fnUntraced(
    function*<E>(projectId: ProjectId, fileName: string, content: Stream.Stream<Uint8Array, E>) {
      const objectId = yield* identifiers.objectId
      const createdAt = yield* Clock.currentTimeMillis
      return yield* store.write(
        { objectId, projectId, fileName: safeFileName(fileName), createdAt },
        content,
        maximum
      )
    }
  )

  const get = Effect.fn("Objects.get")(function*(objectId: string) {
    return yield* Effect.fromOption(yield* store.find(objectId), () => new ObjectNotFound({ objectId }))
  })

  const remove = Effect.fn("Objects.remove")(function*(projectId: ProjectId, objectId: string) {
    const found = Option.filter(yield* store.find(objectId), (object) => object.projectId === projectId)
    if (Option.isNone(found)) return yield* new ObjectNotFound({ objectId })
    yield* store.remove(objectId)
  })

  return Objects.of({ upload, get, read: store.read, remove })
})
