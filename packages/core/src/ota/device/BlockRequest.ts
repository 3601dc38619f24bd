/**
 * The message by which a device asks for a block of its firmware. See
 * docs/protocol/upgrades.md.
 */
import { Predicate } from "effect"
import { type DeviceReply, fieldError } from "../../uplink/DeviceReply.ts"
import { isWellFormed } from "../../kernel/Text.ts"

/** The method of the message. */
export const downloadMethod = "thing.file.download"

/** The id of the only file of a firmware. */
export const streamFileId = 1

/** Bytes. A message with such a block is half as long as the longest message. */
const maxBlockSize = 128 * 1024
/** Characters. */
const maxTokenLength = 128

export interface BlockRequest {
  /** The id of the firmware. */
  readonly streamId: number
  readonly fileId: number
  /** Bytes; the last block may be shorter. */
  readonly size: number
  /** Bytes from the start of the file. */
  readonly offset: number
  /** Text of the device, which its reply repeats. */
  readonly fileToken: string | undefined
}

const fields = (value: unknown) => (Predicate.isObject(value) ? value : {}) as Readonly<Record<string, unknown>>

const isWhole = (value: unknown, minimum: number, maximum = Number.MAX_SAFE_INTEGER): value is number =>
  Number.isSafeInteger(value) && (value as number) >= minimum && (value as number) <= maximum

/** Reads the request; returns the reply that refuses it if it is not valid. */
export const parseBlockRequest = (params: unknown): BlockRequest | DeviceReply => {
  const { fileBlock, fileInfo, fileToken } = fields(params)
  const { fileId, streamId } = fields(fileInfo)
  const { offset, size } = fields(fileBlock)
  if (!isWhole(streamId, 1)) return fieldError("fileInfo.streamId", "expected the number that came with the upgrade")
  if (!isWhole(fileId, 1)) return fieldError("fileInfo.fileId", "expected the number that came with the upgrade")
  if (!isWhole(size, 1, maxBlockSize)) return fieldError("fileBlock.size", `expected 1 to ${maxBlockSize} bytes`)
  if (!isWhole(offset, 0)) return fieldError("fileBlock.offset", "expected a number of bytes, 0 or more")
  if (fileToken === undefined) return { streamId, fileId, size, offset, fileToken }
  if (typeof fileToken !== "string" || fileToken.length > maxTokenLength || !isWellFormed(fileToken)) {
    return fieldError("fileToken", `expected at most ${maxTokenLength} characters`)
  }
  return { streamId, fileId, size, offset, fileToken }
}
