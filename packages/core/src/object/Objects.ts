/**
 * Manages objects: files that applications upload (docs/api/objects.md).
 */
import { Clock, Context, Effect, Layer, Option, type Scope, Stream } from "effect"
import { Identifiers } from "../kernel/Identifiers.ts"
import type { Randomness } from "../kernel/Randomness.ts"
import { type StoreError, untilStored } from "../kernel/StoreError.ts"
import type { ProjectId } from "../project/Project.ts"
import { QuotaExceeded } from "../project/Quota.ts"
import { Quotas } from "../project/Quotas.ts"
import type { QuotaStore } from "../project/QuotaStore.ts"
import { ObjectStore } from "./ObjectStore.ts"
import {
  type ByteRange,
  defaultMaxObjectSize,
  ObjectInUse,
  ObjectNotFound,
  ObjectTooLarge,
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
  ) => Effect.Effect<StoredObject, E | ObjectTooLarge | QuotaExceeded | StoreError>
  /** Returns the object. The id is the only protection: `get` looks in all projects. */
  readonly get: (objectId: string) => Effect.Effect<StoredObject, ObjectNotFound | StoreError>
  /** Streams the bytes of the object, or those in `range`. */
  readonly read: (object: StoredObject, range?: ByteRange) => Stream.Stream<Uint8Array, StoreError>
  /** Removes an object of the project. Fails with `ObjectInUse` if a check of `protect` finds a reason. */
  readonly remove: (
    projectId: ProjectId,
    objectId: string
  ) => Effect.Effect<void, ObjectNotFound | ObjectInUse | StoreError>
  /**
   * Asks `neededBy` before each removal, until the scope closes. It returns why the
   * object cannot be removed, or none.
   */
  readonly protect: (
    neededBy: (object: StoredObject) => Effect.Effect<Option.Option<string>, StoreError>
  ) => Effect.Effect<void, never, Scope.Scope>
}>()("@device-cloud/core/object/Objects") {
  /**
   * Not a part of `DeviceCloud.layer`: an application without objects needs no
   * store for them (docs/decisions/0017-objects-beside-the-cloud.md).
   */
  static readonly layer: Layer.Layer<Objects, never, ObjectStore | QuotaStore | Randomness> = Layer.effect(
    Objects,
    Effect.suspend(() => make)
  ).pipe(
    Layer.provide([Identifiers.layer, Quotas.layer])
  )
}

/** Bytes that one object may have, at most. Default: 512 MiB. */
export const MaxObjectSize = Context.Reference<number>("@device-cloud/core/object/MaxObjectSize", {
  defaultValue: () => defaultMaxObjectSize
})

/** An upload takes its bytes from the quota of its project whenever so many have come. */
const countEvery = 1024 * 1024

const make = Effect.gen(function*() {
  const store = yield* ObjectStore
  const quotas = yield* Quotas
  const identifiers = yield* Identifiers
  const maximum = yield* MaxObjectSize
  const scope = yield* Effect.scope

  /** While the storage is away, goes on in the background. */
  const giveBytes = (projectId: ProjectId, bytes: number) => {
    const give = quotas.giveBytes(projectId, bytes)
    return Effect.catchIf(
      give,
      ({ retryable }) => retryable,
      () => Effect.asVoid(Effect.forkIn(Effect.ignore(untilStored(give)), scope))
    )
  }

  const checks = new Set<Parameters<Objects["Service"]["protect"]>[0]>()

  const upload = Effect.fnUntraced(
    function*<E>(projectId: ProjectId, fileName: string, content: Stream.Stream<Uint8Array, E>) {
      const objectId = yield* identifiers.objectId
      const createdAt = yield* Clock.currentTimeMillis
      const { left, limit } = yield* quotas.roomForObjects(projectId)
      let taken = 0
      let waiting = 0
      // Others use the room meanwhile, so bytes are taken as they come.
      const take = Effect.suspend(() => {
        const bytes = waiting
        waiting = 0
        return Effect.tap(quotas.takeBytes(projectId, bytes), () => Effect.sync(() => taken += bytes))
      }).pipe(Effect.uninterruptible)
      const counted = Stream.tap(content, (chunk) => {
        waiting += chunk.length
        return waiting < countEvery ? Effect.void : take
      })
      return yield* store.write(
        { objectId, projectId, fileName: safeFileName(fileName), createdAt, isCounted: true },
        counted,
        Math.min(maximum, left)
      ).pipe(
        Effect.mapError((error) =>
          error instanceof ObjectTooLarge && left < maximum ? new QuotaExceeded({ quota: "objectBytes", limit }) : error
        ),
        Effect.tap(take),
        Effect.onError(() =>
          Effect.andThen(Effect.ignore(giveBytes(projectId, taken)), () => Effect.ignore(store.remove(objectId)))
        )
      )
    }
  )

  const get = Effect.fn("Objects.get")(function*(objectId: string) {
    return yield* Effect.fromOption(yield* store.find(objectId), () => new ObjectNotFound({ objectId }))
  })

  const remove = Effect.fn("Objects.remove")(function*(projectId: ProjectId, objectId: string) {
    const found = Option.filter(yield* store.find(objectId), (object) => object.projectId === projectId)
    if (Option.isNone(found)) return yield* new ObjectNotFound({ objectId })
    for (const neededBy of checks) {
      const reason = yield* neededBy(found.value)
      if (Option.isSome(reason)) return yield* new ObjectInUse({ objectId, reason: reason.value })
    }
    const { isCounted, size } = found.value
    const isRemoved = yield* store.remove(objectId).pipe(
      Effect.tap((isRemoved) => isRemoved && isCounted === true ? giveBytes(projectId, size) : Effect.void),
      Effect.uninterruptible
    )
    if (!isRemoved) return yield* new ObjectNotFound({ objectId })
  })

  const protect: Objects["Service"]["protect"] = (neededBy) =>
    Effect.asVoid(
      Effect.acquireRelease(
        Effect.sync(() => checks.add(neededBy)),
        () => Effect.sync(() => checks.delete(neededBy))
      )
    )

  return Objects.of({ upload, get, read: store.read, remove, protect })
})
