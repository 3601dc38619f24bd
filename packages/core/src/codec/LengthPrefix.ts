/**
 * Lengths that stand in front of what they count.
 */
import type { ByteReader } from "./ByteReader.ts"
import type { ByteWriter } from "./ByteWriter.ts"
import { CodecMisfit, type Length } from "./CodecDescription.ts"

/** Writes a length over the bytes that are kept for it at `at`. */
export const writeLength = (
  writer: ByteWriter,
  at: number,
  length: number,
  size: number,
  little: boolean,
  path: string
): void => {
  if (length < 0 || length >= 2 ** (8 * size)) {
    throw new CodecMisfit({ path, expected: `expected a length that ${size} bytes hold, not ${length}` })
  }
  writer.integerAt(at, length, size, little)
}

/** Returns the length in front; undefined: the length is fixed, or reaches to the end. */
export const lengthPrefix = (length: Length, path: string) => {
  if (typeof length !== "object") return undefined
  const { endian, prefix } = length
  const little = endian === "little"
  return {
    size: prefix,
    read: (reader: ByteReader) => reader.uint(prefix, little, path),
    write: (writer: ByteWriter, value: number) => writeLength(writer, writer.take(prefix), value, prefix, little, path)
  }
}
