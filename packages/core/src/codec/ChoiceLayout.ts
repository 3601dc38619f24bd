/**
 * Choices: a tag says which parts follow.
 */
import type { ByteReader, Target } from "./ByteReader.ts"
import type { ByteWriter } from "./ByteWriter.ts"
import { type ChoicePart, CodecMisfit } from "./CodecDescription.ts"
import type { Layout } from "./Layout.ts"
import { writeLength } from "./LengthPrefix.ts"
import type { Source } from "./Source.ts"

interface Case {
  readonly tag: number
  readonly layout: Layout
}

/** `tail`: bytes that follow the choice, for one that repeats to the end. */
export const choiceLayout = (
  { length, repeat = false, size }: ChoicePart,
  cases: ReadonlyArray<Case>,
  path: string,
  little: boolean,
  tail: number
): Layout => {
  const byTag = new Map(cases.map(({ layout, tag }) => [tag, layout]))
  const readOne = (reader: ByteReader, into: Target): void => {
    const tag = reader.uint(size, little, path)
    const layout = byTag.get(tag)
    if (length === undefined) {
      if (layout === undefined) throw new CodecMisfit({ path, expected: `expected a known tag, not ${tag}` })
      return layout.read(reader, into)
    }
    const bytes = reader.uint(length, little, path)
    // A length says how much of an unknown entry to pass over.
    if (layout === undefined) reader.take(bytes, path)
    else reader.within(bytes, path, () => layout.read(reader, into))
  }
  const writeOne = (writer: ByteWriter, from: Source, { layout, tag }: Case): void => {
    writer.integer(tag, size, little)
    if (length === undefined) return layout.write(writer, from)
    const at = writer.take(length)
    writeLength(writer, at, writer.within(() => layout.write(writer, from)), length, little, path)
  }
  const touching = (from: Source) => cases.filter(({ layout }) => layout.applies(from) && layout.touches(from))
  const chosen = (from: Source) => touching(from)[0] ?? cases.find(({ layout }) => layout.applies(from))
  const sizes = new Set(cases.map(({ layout }) => layout.fixed))
  const [fixed] = sizes
  return {
    min: repeat ? 0 : size + (length ?? 0) + Math.min(...cases.map(({ layout }) => layout.min)),
    fixed: repeat || sizes.size > 1 || fixed === undefined ? undefined : size + (length ?? 0) + fixed,
    read: (reader, into) => {
      if (!repeat) return readOne(reader, into)
      while (reader.left > tail) readOne(reader, into)
    },
    write: (writer, from) => {
      if (repeat) return touching(from).forEach((one) => writeOne(writer, from, one))
      const one = chosen(from)
      if (one === undefined) {
        throw new CodecMisfit({ path: from.path, expected: `expected the members of one of the cases of ${path}` })
      }
      writeOne(writer, from, one)
    },
    applies: (from) => repeat || chosen(from) !== undefined,
    touches: (from) => touching(from).length > 0
  }
}
