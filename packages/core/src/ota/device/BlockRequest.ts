/**
 * A device asks for a block of the firmware that it is to be upgraded to
 * (alink-facts, section 3.16).
 */
import { Predicate } from "effect"
import { type DeviceReply, parameterError } from "../../uplink/DeviceReply.ts"
import { isWellFormed } from "../../kernel/Text.ts"

/** The method by which a device asks. */
export const downloadMethod = "thing.file.download"

/** A firmware is one file. */
export const streamFileId = 1

/** Bytes in a block: with what surrounds it, half of the largest message. */
const maxBlockSize = 128 * 1024
const maxTokenLength = 128

export interface BlockRequest {
  /** The firmware, by its id. */
  readonly streamId: number
  readonly fileId: number
  /** Bytes; the last block may be shorter. */
  readonly size: number
  /** Bytes from the start of the file. */
  readonly offset: number
  /** The device's own, echoed. */
  readonly fileToken: string | undefined
}

const fields = (value: unknown) => (Predicate.isObject(value) ? value : {}) as Readonly<Record<string, unknown>>

const isWhole = (value: unknown, minimum: number, maximum = Number.MAX_SAFE_INTEGER): value is number =>
  Number.isSafeInteger(value) && (value as number) >= minimum && (value as number) <= maximum

/** The request, or what is wrong with it. */
export const parseBlockRequest = (params: unknown): BlockRequest | DeviceReply => {
  const { fileBlock, fileInfo, fileToken } = fields(params)
  const { fileId, streamId } = fields(fileInfo)
  const { offset, size } = fields(fileBlock)
  if (!isWhole(streamId, 1)) return parameterError("fileInfo.streamId: expected the number that came with the upgrade")
  if (!isWhole(fileId, 1)) return parameterError("fileInfo.fileId: expected the number that came with the upgrade")
  if (!isWhole(size, 1, maxBlockSize)) return parameterError(`fileBlock.size: expected 1 to ${maxBlockSize} bytes`)
  if (!isWhole(offset, 0)) return parameterError("fileBlock.offset: expected a number of bytes, 0 or more")
  if (fileToken === undefined) return { streamId, fileId, size, offset, fileToken }
  if (typeof fileToken !== "string" || fileToken.length > maxTokenLength || !isWellFormed(fileToken)) {
    return parameterError(`fileToken: expected at most ${maxTokenLength} characters`)
  }
  return { streamId, fileId, size, offset, fileToken }
}
