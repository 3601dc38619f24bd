/**
 * Firmware files that this cloud stores as objects.
 */
import { Context, Effect, Layer, Option, Stream } from "effect"
import { StoreError } from "../../kernel/StoreError.ts"
import { Objects } from "../../object/Objects.ts"
import { objectsPath, parseAddress, type StoredObject } from "../../object/StoredObject.ts"
import { OtaStore } from "../task/OtaStore.ts"
import type { Firmware } from "./Firmware.ts"

export class FirmwareFiles extends Context.Service<FirmwareFiles, {
  /** The object that holds the file of a firmware. None if the file is elsewhere or belongs to another project. */
  readonly find: (
    firmware: Pick<Firmware, "ossPath" | "projectId">
  ) => Effect.Effect<Option.Option<StoredObject>, StoreError>
  /**
   * Bytes of a file from `offset` on, which is below its size: `size` of them, or
   * fewer at the end of the file. Only they are in memory.
   */
  readonly read: (file: StoredObject, offset: number, size: number) => Effect.Effect<Uint8Array, StoreError>
  /** All bytes of a file. */
  readonly content: (file: StoredObject) => Stream.Stream<Uint8Array, StoreError>
}>()("@device-cloud/core/ota/firmware/FirmwareFiles") {
  /**
   * Uses the `Objects` of the application, and keeps the file of a task that has not
   * ended, or whose devices still finish, from being removed. Without `Objects`, no file is stored here.
   */
  static readonly layer: Layer.Layer<FirmwareFiles, never, OtaStore> = Layer.effect(
    FirmwareFiles,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function*() {
  // An application may store no objects.
  const objects = yield* Effect.serviceOption(Objects)
  const store = yield* OtaStore

  if (Option.isSome(objects)) {
    yield* objects.value.protect(({ objectId, projectId }) =>
      Effect.map(
        store.upgradingFrom(projectId, `${objectsPath}/${objectId}/`),
        Option.map(({ firmwareId, version }) =>
          `firmware ${firmwareId} (version ${version}) has a task that has not ended, or whose devices still finish`
        )
      )
    )
  }

  const find = Effect.fnUntraced(
    function*({ ossPath, projectId }: Pick<Firmware, "ossPath" | "projectId">) {
      const address = parseAddress(ossPath)
      if (address === undefined || Option.isNone(objects)) return Option.none()
      const object = yield* objects.value.get(address.objectId)
      return object.projectId === projectId && object.fileName === address.fileName
        ? Option.some(object)
        : Option.none()
    },
    Effect.catchTag("ObjectNotFound", () => Effect.succeedNone)
  )

  const read = Effect.fnUntraced(function*(file: StoredObject, offset: number, size: number) {
    if (Option.isNone(objects)) return new Uint8Array()
    const end = Math.min(offset + size, file.size) - 1
    const chunks = yield* Stream.runCollect(objects.value.read(file, { start: offset, end }))
    const bytes = new Uint8Array(end - offset + 1)
    let at = 0
    for (const chunk of chunks) {
      bytes.set(chunk, at)
      at += chunk.length
    }
    if (at < bytes.length) {
      return yield* new StoreError({
        operation: "ObjectStore.read",
        retryable: false,
        cause: `${at} of ${bytes.length} bytes`
      })
    }
    return bytes
  })

  const content = (file: StoredObject) => Option.isNone(objects) ? Stream.empty : objects.value.read(file)

  return FirmwareFiles.of({ find, read, content })
})
