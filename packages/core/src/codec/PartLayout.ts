/**
 * Compiles the parts of a description, and finds what is wrong with it.
 */
import { Result } from "effect"
import { Hex } from "effect/encoding"
import type { InputIssue } from "../kernel/InvalidInput.ts"
import { equalJson, type Json } from "../kernel/Json.ts"
import { arrayLayout } from "./ArrayLayout.ts"
import type { Target } from "./ByteReader.ts"
import { checksumOf } from "./Checksum.ts"
import { choiceLayout } from "./ChoiceLayout.ts"
import {
  type ArrayPart,
  type ChecksumPart,
  type ChoicePart,
  CodecMisfit,
  type Length,
  maxChecksums,
  maxNesting,
  maxParts,
  type ObjectPart,
  type Part,
  type SizedPart
} from "./CodecDescription.ts"
import { bind, fixedSize, type Layout, positioned, sequence, silent, type ValueLayout } from "./Layout.ts"
import { writeLength } from "./LengthPrefix.ts"
import { bitsLayout, floatLayout, idLayout, integerLayout } from "./NumberLayout.ts"
import { textLayout } from "./TextLayout.ts"

type Path = ReadonlyArray<string | number>

/** Where a part stands. */
interface Place {
  readonly path: Path
  /** Parts around it. */
  readonly depth: number
  /** Bytes that follow it in the enclosing part; undefined: their number is not known. */
  readonly tail: number | undefined
  /** Whether the part may stand several times in a message. */
  readonly isRepeated: boolean
  /** Says why a place in the message is none; undefined: the part is in an object of its own. */
  readonly refuseTarget: ((to: string) => string | undefined) | undefined
}

export const pathText = (path: Path): string =>
  path.map((segment, i) => typeof segment === "number" ? `[${segment}]` : i === 0 ? segment : `.${segment}`).join("")

const valued = new Set<Part["type"]>(["uint", "int", "float", "text", "object", "array"])

/** Compiles the parts of one description. What is wrong is in `issues` afterwards. */
export class PartCompiler {
  readonly issues: Array<InputIssue> = []
  #parts = 0
  #checksums = 0

  /** Compiles the parts of one message. */
  message(parts: ReadonlyArray<Part>, path: Path, refuseTarget: Place["refuseTarget"]): Layout {
    this.#checksums = 0
    return this.#sequence(parts, { path, depth: 0, tail: 0, isRepeated: false, refuseTarget })
  }

  #refuse(path: Path, message: string): Layout {
    this.issues.push({ path: [...path], message })
    return silent(1, () => {}, () => {})
  }

  /** From the last part to the first: what follows a part must be known. */
  #sequence(parts: ReadonlyArray<Part>, place: Place): Layout {
    if (place.depth > maxNesting) {
      return this.#refuse(place.path, `Expected a part inside at most ${maxNesting} others`)
    }
    const layouts: Array<Layout> = []
    for (let i = parts.length - 1; i >= 0; i--) {
      const after = fixedSize(layouts)
      layouts.unshift(this.#part(parts[i]!, {
        ...place,
        path: [...place.path, "parts", i],
        tail: place.tail === undefined || after === undefined ? undefined : place.tail + after
      }))
    }
    return sequence(layouts)
  }

  #part(part: Part, place: Place): Layout {
    const { path } = place
    if (++this.#parts > maxParts) return this.#refuse(path, `Expected at most ${maxParts} parts in the description`)
    const layout = this.#unpositioned(part, place)
    if (part.type === "value" || part.at === undefined) return layout
    return place.isRepeated
      ? this.#refuse([...path, "at"], "Expected no place in a part that may stand several times")
      : positioned(layout, part.at, pathText(path))
  }

  #unpositioned(part: Part, place: Place): Layout {
    const path = pathText(place.path)
    switch (part.type) {
      case "constant":
        return constant(Result.getOrThrow(Hex.decode(part.hex)), path)
      case "skip":
        return silent(part.size, (reader) => void reader.take(part.size, path), (writer) => void writer.take(part.size))
      case "value": {
        this.#checkTarget(part.to, [...place.path, "to"], place)
        const members = part.to.split(".")
        const isThere = (value: Json | undefined) => equalJson(value ?? null, part.value)
        const write: ValueLayout["write"] = (_, source) => {
          if (isThere(source.value)) return
          throw new CodecMisfit({ path: source.path, expected: `expected ${JSON.stringify(part.value)}` })
        }
        const none = bind({ min: 0, fixed: 0, read: () => part.value, write }, part.to, path)
        return { ...none, applies: (from) => isThere(from.peek(members)) }
      }
      case "checksum":
        return this.#checksum(part, place)
      case "bits":
        part.fields.forEach(({ bit, to, width = 1 }, i) => {
          const at = [...place.path, "fields", i]
          this.#checkTarget(to, [...at, "to"], place)
          if (bit + width > 8 * part.size) this.#refuse([...at, "width"], `Expected bits below ${8 * part.size}`)
        })
        return bitsLayout(part, path)
      case "sized":
        return this.#sized(part, place)
      case "choice":
        return this.#choice(part, place)
      case "object":
        if (part.to === undefined) return this.#sequence(part.parts, { ...place, depth: place.depth + 1 })
        return this.#bound(part, part.to, place)
      default:
        return part.to === undefined
          ? this.#refuse([...place.path, "to"], "Expected where the value goes, for example params.temperature")
          : this.#bound(part, part.to, place)
    }
  }

  #bound(part: Part, to: string, place: Place): Layout {
    this.#checkTarget(to, [...place.path, "to"], place)
    return bind(this.#value(part, to, place), to, pathText(place.path), "default" in part ? part.default : undefined)
  }

  #checkTarget(to: string, path: Path, { refuseTarget }: Place): void {
    const message = refuseTarget?.(to)
    if (message !== undefined) this.#refuse(path, message)
  }

  #value(part: Part, to: string, place: Place): ValueLayout {
    const path = pathText(place.path)
    switch (part.type) {
      case "uint":
      case "int":
        return to === "id" && place.refuseTarget !== undefined ? idLayout(part, path) : integerLayout(part, path)
      case "float":
        return floatLayout(part, path)
      case "text":
        this.#checkRest(part.length, [...place.path, "length"], place)
        return textLayout(part, path, place.tail ?? 0)
      case "array":
        return this.#array(part, place)
      default:
        return objectValue(
          this.#sequence((part as ObjectPart).parts, { ...place, depth: place.depth + 1, refuseTarget: undefined })
        )
    }
  }

  #checkRest(length: Length, path: Path, { tail }: Place): void {
    if (length === "rest" && tail === undefined) {
      this.#refuse(path, "Expected no rest here: the number of bytes that follow is not known")
    }
  }

  #array(part: ArrayPart, place: Place): ValueLayout {
    const ofPath = [...place.path, "of"]
    this.#checkRest(part.count, [...place.path, "count"], place)
    if (!valued.has(part.of.type) || ("to" in part.of && part.of.to !== undefined)) {
      this.#refuse(ofPath, "Expected a uint, int, float, text, object or array without `to`")
    }
    if (++this.#parts > maxParts) this.#refuse(ofPath, `Expected at most ${maxParts} parts in the description`)
    if (place.depth >= maxNesting) this.#refuse(ofPath, `Expected a part inside at most ${maxNesting} others`)
    if (this.issues.length > 0) return emptyValue
    if ("at" in part.of && part.of.at !== undefined) this.#refuse([...ofPath, "at"], "Expected no place in an array")
    const element = this.#value(part.of, "", {
      path: ofPath,
      depth: place.depth + 1,
      tail: undefined,
      isRepeated: true,
      refuseTarget: undefined
    })
    if (element.min === 0) this.#refuse(ofPath, "Expected an element of at least one byte")
    return arrayLayout(part.count, element, pathText(place.path), place.tail ?? 0)
  }

  #checksum({ algorithm, endian, from = 0 }: ChecksumPart, { isRepeated, path }: Place): Layout {
    if (isRepeated) return this.#refuse(path, "Expected no checksum in a part that may stand several times")
    if (++this.#checksums > maxChecksums) return this.#refuse(path, `Expected at most ${maxChecksums} checksums`)
    const { of, size } = checksumOf(algorithm)
    const little = endian === "little"
    return silent(
      size,
      (reader) => {
        const { position, start } = reader
        const expected = of(reader.bytes, start + from, position)
        const found = reader.uint(size, little, pathText(path))
        if (found === expected) return
        throw new CodecMisfit({
          path: pathText(path),
          expected: `expected the checksum ${hexOf(expected, size)}, not ${hexOf(found, size)}`
        })
      },
      (writer) => writer.integer(of(writer.bytes, writer.start + from, writer.position), size, little)
    )
  }

  #sized({ adjust = 0, endian, parts, size }: SizedPart, place: Place): Layout {
    const inner = this.#sequence(parts, { ...place, depth: place.depth + 1, tail: 0 })
    const path = pathText(place.path)
    const little = endian === "little"
    return {
      ...inner,
      min: size + inner.min,
      fixed: inner.fixed === undefined ? undefined : size + inner.fixed,
      read: (reader, into) => {
        const length = reader.uint(size, little, path) - adjust
        if (length < 0) throw new CodecMisfit({ path, expected: `expected a length of at least ${adjust}` })
        reader.within(length, path, () => inner.read(reader, into))
      },
      write: (writer, from) => {
        const at = writer.take(size)
        writeLength(writer, at, writer.within(() => inner.write(writer, from)) + adjust, size, little, path)
      }
    }
  }

  #choice(part: ChoicePart, place: Place): Layout {
    const { cases, endian, length, repeat = false, size } = part
    if (repeat) this.#checkRest("rest", [...place.path, "repeat"], place)
    const tags = new Set<number>()
    const compiled = cases.map(({ parts, tag }, i) => {
      const path = [...place.path, "cases", i]
      if (tags.has(tag)) this.#refuse([...path, "tag"], `Expected a tag that no other case has, not ${tag}`)
      if (tag >= 2 ** (8 * size)) this.#refuse([...path, "tag"], `Expected a tag of ${size} bytes`)
      tags.add(tag)
      const layout = this.#sequence(parts, {
        ...place,
        path,
        depth: place.depth + 1,
        tail: length !== undefined ? 0 : repeat ? undefined : place.tail,
        isRepeated: place.isRepeated || repeat
      })
      return { tag, layout }
    })
    return choiceLayout(part, compiled, pathText(place.path), endian === "little", place.tail ?? 0)
  }
}

const hexOf = (value: number, size: number): string => value.toString(16).padStart(2 * size, "0")

const constant = (bytes: Uint8Array, path: string): Layout =>
  silent(
    bytes.length,
    (reader) => {
      const from = reader.take(bytes.length, path)
      for (let i = 0; i < bytes.length; i++) {
        if (reader.bytes[from + i] !== bytes[i]) {
          throw new CodecMisfit({ path, expected: `expected ${Hex.encode(bytes)} at byte ${from}` })
        }
      }
    },
    (writer) => writer.raw(bytes)
  )

const emptyValue: ValueLayout = { min: 1, fixed: 1, read: () => null, write: () => {} }

const objectValue = (layout: Layout): ValueLayout => ({
  min: layout.min,
  fixed: layout.fixed,
  read: (reader) => {
    const value: Target = {}
    layout.read(reader, value)
    return value
  },
  write: layout.write
})
