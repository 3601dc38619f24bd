/**
 * Port: where the bytes of objects are kept.
 */
import { Context, type Effect, type Option, type Stream } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ByteRange, ObjectTooLarge, StoredObject } from "./StoredObject.ts"

/** An object before it is stored. */
export type NewObject = Omit<StoredObject, "size" | "md5" | "sha256">

/**
 * Laws: an object that `write` returns is whole and survives a crash; a failed
 * write leaves nothing. A store on disk holds a few chunks of an object in memory,
 * however large the object is.
 */
export class ObjectStore extends Context.Service<ObjectStore, {
  /**
   * Stores an object. Fails with `ObjectTooLarge` if the content has more than
   * `maximum` bytes, and with the failure of `content`.
   */
  readonly write: <E>(
    object: NewObject,
    content: Stream.Stream<Uint8Array, E>,
    maximum: number
  ) => Effect.Effect<StoredObject, E | ObjectTooLarge | StoreError>
  /** Finds an object by its id. One that is being written is not there yet. */
  readonly find: (objectId: string) => Effect.Effect<Option.Option<StoredObject>, StoreError>
  /** Streams the bytes of an object that `find` has returned, or those in `range`. */
  readonly read: (object: StoredObject, range?: ByteRange) => Stream.Stream<Uint8Array, StoreError>
  /** Removes an object. Of several calls at the same time one returns true; false: there is no such object. */
  readonly remove: (objectId: string) => Effect.Effect<boolean, StoreError>
}>()("@device-cloud/core/object/ObjectStore") {}
