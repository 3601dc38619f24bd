/**
 * Texts in UTF-8, and bytes as hex text.
 */
import { Result } from "effect"
import { Hex } from "effect/encoding"
import { CodecMisfit, type TextPart } from "./CodecDescription.ts"
import type { ValueLayout } from "./Layout.ts"
import { lengthPrefix } from "./LengthPrefix.ts"
import type { Source } from "./Source.ts"

const utf8 = new TextEncoder()
const fromUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const toBytes = ({ path, value }: Source, isHex: boolean): Uint8Array => {
  if (typeof value === "string" && !isHex) return utf8.encode(value)
  const bytes = typeof value === "string" ? Hex.decode(value) : undefined
  if (bytes === undefined || Result.isFailure(bytes)) {
    throw new CodecMisfit({ path, expected: isHex ? "expected bytes as hex text" : "expected text" })
  }
  return bytes.success
}

const toText = (bytes: Uint8Array, isHex: boolean, path: string): string => {
  if (isHex) return Hex.encode(bytes)
  try {
    return fromUtf8.decode(bytes)
  } catch {
    throw new CodecMisfit({ path, expected: "expected text in UTF-8" })
  }
}

/** `tail`: bytes that follow the text, for one that reaches to the end. */
export const textLayout = ({ encoding, length }: TextPart, path: string, tail: number): ValueLayout => {
  const isHex = encoding === "hex"
  const prefix = lengthPrefix(length, path)
  const fixed = typeof length === "number" ? length : undefined
  return {
    min: fixed ?? prefix?.size ?? 0,
    fixed,
    read: (reader) => {
      const size = fixed ?? prefix?.read(reader) ?? Math.max(reader.left - tail, 0)
      const from = reader.take(size, path)
      let end = from + size
      // A text of a fixed length is filled up with zeros.
      if (fixed !== undefined && !isHex) { while (end > from && reader.bytes[end - 1] === 0) end-- }
      return toText(reader.bytes.subarray(from, end), isHex, path)
    },
    write: (writer, source) => {
      const bytes = toBytes(source, isHex)
      if (fixed !== undefined && (isHex ? bytes.length !== fixed : bytes.length > fixed)) {
        throw new CodecMisfit({
          path: source.path,
          expected: `expected ${isHex ? "" : "at most "}${fixed} bytes, not ${bytes.length}`
        })
      }
      prefix?.write(writer, bytes.length)
      writer.raw(bytes)
      if (fixed !== undefined) writer.take(fixed - bytes.length)
    }
  }
}
