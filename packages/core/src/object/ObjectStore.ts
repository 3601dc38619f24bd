/**
 * Port: where the bytes of objects are kept.
 */
import { Context, type Effect, type Option, type Stream } from "effect"
import type { StoreError } from "../kernel/StoreError.ts"
import type { ByteRange, ObjectTooLarge, StoredObject } from "./StoredObject.ts"

/** An object that has not been stored yet. */
export type NewObject = Omit<StoredObject, "size" | "md5">

/**
 * Laws: an object is there whole, and stays after a crash, or not at all.
 * Whatever its size, a few chunks of it are in memory.
 */
export class ObjectStore extends Context.Service<ObjectStore, {
  /** Nothing is left of content that fails or is larger than `maximum` bytes. */
  readonly write: <E>(
    object: NewObject,
    content: Stream.Stream<Uint8Array, E>,
    maximum: number
  ) => Effect.Effect<StoredObject, E | ObjectTooLarge | StoreError>
  readonly find: (objectId: string) => Effect.Effect<Option.Option<StoredObject>, StoreError>
  /** The bytes of an object that was found, or a part of them. */
  readonly read: (object: StoredObject, range?: ByteRange) => Stream.Stream<Uint8Array, StoreError>
  /** Without effect when there is no such object. */
  readonly remove: (objectId: string) => Effect.Effect<void, StoreError>
}>()("@device-cloud/core/object/ObjectStore") {}
