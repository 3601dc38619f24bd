/**
 * Arrays: elements of one kind, one after the other.
 */
import type { Json } from "../kernel/Json.ts"
import { CodecMisfit, type Length } from "./CodecDescription.ts"
import type { ValueLayout } from "./Layout.ts"
import { lengthPrefix } from "./LengthPrefix.ts"

/** `tail`: bytes that follow the array, for one that reaches to the end. */
export const arrayLayout = (count: Length, element: ValueLayout, path: string, tail: number): ValueLayout => {
  const prefix = lengthPrefix(count, path)
  const isFixed = typeof count === "number"
  return {
    min: isFixed ? count * element.min : prefix?.size ?? 0,
    fixed: isFixed && element.fixed !== undefined ? count * element.fixed : undefined,
    read: (reader) => {
      const elements: Array<Json> = []
      const expected = isFixed ? count : prefix?.read(reader)
      while (expected === undefined ? reader.left > tail : elements.length < expected) {
        reader.countValue(path)
        elements.push(element.read(reader))
      }
      return elements
    },
    write: (writer, source) => {
      const { value } = source
      if (!Array.isArray(value) || (isFixed && value.length !== count)) {
        throw new CodecMisfit({
          path: source.path,
          expected: isFixed ? `expected an array of ${count} elements` : "expected an array"
        })
      }
      prefix?.write(writer, value.length)
      for (let i = 0; i < value.length; i++) element.write(writer, source.take([i]))
    }
  }
}
