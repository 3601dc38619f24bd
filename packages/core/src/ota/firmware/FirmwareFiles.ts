/**
 * The files of firmware that are objects of this cloud, and blocks of them for
 * devices that download over their own connection (alink-facts, section 3.16).
 */
import { Context, Effect, Layer, Option, Stream } from "effect"
import type { DeviceIdentity } from "../../device/Device.ts"
import { type DeviceReply, failure, parameterError, success, systemError } from "../../uplink/DeviceReply.ts"
import { Objects } from "../../object/Objects.ts"
import { parseAddress, type StoredObject } from "../../object/StoredObject.ts"
import { StoreError } from "../../kernel/StoreError.ts"
import { type BlockRequest, streamFileId } from "../device/BlockRequest.ts"
import type { Firmware } from "./Firmware.ts"
import { OtaStore } from "../task/OtaStore.ts"
import { isReleased } from "../task/UpgradeStateMachine.ts"
import type { Assignment } from "../task/UpgradeTask.ts"

/** Blocks that are read at once. */
const concurrency = 8

const notForDevice = failure(404, "fileInfo: expected the stream and file of an upgrade that waits for this device")

const make = Effect.gen(function*() {
  const store = yield* OtaStore
  // An application that keeps no objects has none to send.
  const objects = yield* Effect.serviceOption(Objects)

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

  /** What is there from `offset` on, at most `size` bytes. */
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

  const block = Effect.fnUntraced(function*(
    open: ReadonlyArray<Assignment>,
    device: DeviceIdentity,
    { fileId, fileToken, offset, size, streamId }: BlockRequest
  ): Effect.fn.Return<DeviceReply, StoreError> {
    const assignment = open.find(({ firmware, record, task }) =>
      record.deviceId === device.deviceId && firmware.firmwareId === streamId && isReleased(task, record)
    )
    if (assignment === undefined || fileId !== streamFileId) return notForDevice
    const file = Option.getOrUndefined(yield* find(assignment.firmware))
    if (file === undefined) {
      return failure(404, `the file is not stored here; it is at ${assignment.firmware.ossPath}`)
    }
    if (offset >= file.size) return parameterError(`fileBlock.offset: expected a number below ${file.size}`)
    const bytes = yield* read(file, offset, size)
    return {
      ...success({
        size: bytes.length,
        ...fileToken === undefined ? {} : { fileToken },
        fileLength: file.size,
        bOffset: offset,
        bSize: bytes.length
      }),
      bytes
    }
  })

  const blocks = Effect.fnUntraced(function*(asked: ReadonlyArray<Asked>) {
    const open = yield* store.unfinished([...new Set(asked.map(({ device }) => device.deviceId))])
    return yield* Effect.forEach(
      asked,
      ({ device, request }) =>
        "code" in request ? Effect.succeed(request) : block(open, device, request).pipe(
          Effect.catch((error) =>
            Effect.as(Effect.logError("A block of firmware could not be read", error), systemError)
          )
        ),
      { concurrency }
    )
  })

  return FirmwareFiles.of({ find, blocks })
})

/** A device and the block that it wants, or what is wrong with its message. */
interface Asked {
  readonly device: DeviceIdentity
  readonly request: BlockRequest | DeviceReply
}

export class FirmwareFiles extends Context.Service<FirmwareFiles, {
  /** The object that is the file of a firmware, if it is one of the same project. */
  readonly find: (
    firmware: Pick<Firmware, "ossPath" | "projectId">
  ) => Effect.Effect<Option.Option<StoredObject>, StoreError>
  /** In the order of what was asked: the bytes, or why there are none. Only those parts of files are in memory. */
  readonly blocks: (asked: ReadonlyArray<Asked>) => Effect.Effect<ReadonlyArray<DeviceReply>, StoreError>
}>()("@device-cloud/core/ota/firmware/FirmwareFiles") {
  /** Uses the `Objects` of the application, if it has any. */
  static readonly layer: Layer.Layer<FirmwareFiles, never, OtaStore> = Layer.effect(FirmwareFiles, make)
}
