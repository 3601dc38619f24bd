/**
 * The blocks of firmware that devices download over their own connection. See
 * docs/protocol/upgrades.md.
 */
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { DeviceIdentity } from "../../device/Device.ts"
import type { StoreError } from "../../kernel/StoreError.ts"
import { type DeviceReply, failure, fieldError, success, systemError } from "../../uplink/DeviceReply.ts"
import { FirmwareFiles } from "../firmware/FirmwareFiles.ts"
import { OtaStore } from "../task/OtaStore.ts"
import { isEarly } from "../task/StartWindow.ts"
import { isReleased } from "../task/UpgradeStateMachine.ts"
import type { Assignment } from "../task/UpgradeTask.ts"
import { type BlockRequest, streamFileId } from "./BlockRequest.ts"

/** A device and the block that it asks for, or the reply that refuses its message. */
interface Asked {
  readonly device: DeviceIdentity
  readonly request: BlockRequest | DeviceReply
}

export class FirmwareBlocks extends Context.Service<FirmwareBlocks, {
  /**
   * Replies to devices that ask for blocks, in the order of `asked`: the bytes,
   * or the reason why the device gets none. Reads 8 blocks at once. A block that
   * cannot be read gets a system error as its reply.
   */
  readonly read: (asked: ReadonlyArray<Asked>) => Effect.Effect<ReadonlyArray<DeviceReply>, StoreError>
}>()("@device-cloud/core/ota/device/FirmwareBlocks") {
  static readonly layer: Layer.Layer<FirmwareBlocks, never, OtaStore | FirmwareFiles> = Layer.effect(
    FirmwareBlocks,
    Effect.suspend(() => make)
  )
}

/** Blocks that are read at once. */
const concurrency = 8

const notForDevice = fieldError(
  "fileInfo",
  "expected the stream and file of an upgrade that waits for this device",
  404
)

const make = Effect.gen(function*() {
  const store = yield* OtaStore
  const files = yield* FirmwareFiles

  const block = Effect.fnUntraced(function*(
    open: ReadonlyArray<Assignment>,
    device: DeviceIdentity,
    { fileId, fileToken, offset, size, streamId }: BlockRequest
  ): Effect.fn.Return<DeviceReply, StoreError> {
    const assignment = open.find(({ firmware, record, task }) =>
      record.deviceId === device.deviceId && firmware.firmwareId === streamId && isReleased(task, record)
    )
    if (assignment === undefined || fileId !== streamFileId) return notForDevice
    if (isEarly(assignment, yield* Clock.currentTimeMillis)) return notForDevice
    const file = Option.getOrUndefined(yield* files.find(assignment.firmware))
    if (file === undefined) {
      return failure(404, `the file is not stored here; it is at ${assignment.firmware.ossPath}`)
    }
    if (offset >= file.size) return fieldError("fileBlock.offset", `expected a number below ${file.size}`)
    const bytes = yield* files.read(file, offset, size)
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

  const read = Effect.fnUntraced(function*(asked: ReadonlyArray<Asked>) {
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

  return FirmwareBlocks.of({ read })
})
