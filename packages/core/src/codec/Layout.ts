/**
 * What the parts of a description become when they are compiled: something that
 * reads and writes bytes.
 */
import type { Json } from "../kernel/Json.ts"
import { type ByteReader, put, type Target } from "./ByteReader.ts"
import type { ByteWriter } from "./ByteWriter.ts"
import { CodecMisfit } from "./CodecDescription.ts"
import { Source } from "./Source.ts"

/** The bytes of a part. */
interface Extent {
  readonly min: number
  /** Undefined: their number depends on the message. */
  readonly fixed: number | undefined
}

/** A part that is one value. Both functions throw `CodecMisfit`. */
export interface ValueLayout extends Extent {
  readonly read: (reader: ByteReader) => Json
  readonly write: (writer: ByteWriter, source: Source) => void
}

/** A part among others. `read` and `write` throw `CodecMisfit`. */
export interface Layout extends Extent {
  readonly read: (reader: ByteReader, into: Target) => void
  readonly write: (writer: ByteWriter, from: Source) => void
  /** Whether the source has all that the part needs. */
  readonly applies: (from: Source) => boolean
  /** Whether the source has anything that the part writes. */
  readonly touches: (from: Source) => boolean
}

/** Gives a value its place in the message. `otherwise` is written if there is no value. */
export const bind = (
  layout: ValueLayout,
  to: string,
  path: string,
  otherwise?: Json
): Layout => {
  const members = to.split(".")
  const has = (from: Source) => from.peek(members) !== undefined
  return {
    min: layout.min,
    fixed: layout.fixed,
    read: (reader, into) => {
      reader.countValue(path)
      put(into, members, layout.read(reader), path)
    },
    write: (writer, from) => {
      const source = from.take(members)
      layout.write(
        writer,
        source.value === undefined && otherwise !== undefined ? new Source(otherwise, source.path) : source
      )
    },
    applies: (from) => otherwise !== undefined || has(from),
    touches: has
  }
}

/** Parts in their order. */
export const sequence = (layouts: ReadonlyArray<Layout>): Layout => ({
  min: layouts.reduce((sum, { min }) => sum + min, 0),
  fixed: fixedSize(layouts),
  read: (reader, into) => {
    for (const layout of layouts) layout.read(reader, into)
  },
  write: (writer, from) => {
    for (const layout of layouts) layout.write(writer, from)
  },
  applies: (from) => layouts.every((layout) => layout.applies(from)),
  touches: (from) => layouts.some((layout) => layout.touches(from))
})

/** Bytes of all parts together; undefined: their number depends on the message. */
export const fixedSize = (layouts: ReadonlyArray<Extent>): number | undefined => {
  let sum = 0
  for (const { fixed } of layouts) {
    if (fixed === undefined) return undefined
    sum += fixed
  }
  return sum
}

/** A part without values. */
export const silent = (
  size: number,
  read: (reader: ByteReader) => void,
  write: (writer: ByteWriter) => void
): Layout => ({ min: size, fixed: size, read, write, applies: () => true, touches: () => false })

/** Puts a part at a byte of the enclosing part. */
export const positioned = (layout: Layout, at: number, path: string): Layout => {
  const gap = (start: number, position: number): number => {
    if (position <= start + at) return start + at - position
    throw new CodecMisfit({ path, expected: `expected the parts before to end at byte ${at}, not ${position - start}` })
  }
  return {
    ...layout,
    fixed: undefined,
    read: (reader, into) => {
      reader.take(gap(reader.start, reader.position), path)
      layout.read(reader, into)
    },
    write: (writer, from) => {
      writer.take(gap(writer.start, writer.position))
      layout.write(writer, from)
    }
  }
}
