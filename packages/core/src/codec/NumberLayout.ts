/**
 * Whole numbers, floating-point numbers and bits, and the values that they stand
 * for.
 */
import type { Json } from "../kernel/Json.ts"
import type { BitField, BitsPart, FloatPart, IntegerPart } from "./CodecDescription.ts"
import { CodecMisfit } from "./CodecDescription.ts"
import { put } from "./ByteReader.ts"
import type { Layout, ValueLayout } from "./Layout.ts"
import { Source } from "./Source.ts"

type Scaled = Pick<IntegerPart, "scale" | "offset" | "labels" | "otherwise">

/** The whole numbers of a place. */
interface Range {
  readonly min: number
  readonly max: number
}

const rangeOf = (bits: number, isSigned: boolean): Range => {
  const [min, max] = isSigned ? [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] : [0, 2 ** bits - 1]
  return { min: Math.max(min, Number.MIN_SAFE_INTEGER), max: Math.min(max, Number.MAX_SAFE_INTEGER) }
}

/** Digits of a scaled value, if they are enough for it: `3 * 0.1` is 0.3. */
const digits = 15

/** Compiles how a whole number stands for a value. */
const compileScaling = ({ labels = {}, offset = 0, otherwise, scale = 1 }: Scaled, { max, min }: Range) => {
  const isExact = Number.isInteger(scale) && Number.isInteger(offset)
  const toNumber = (raw: number): number => {
    const value = raw * scale + offset
    if (isExact) return value
    const short = Number(value.toPrecision(digits))
    return Math.round((short - offset) / scale) === raw ? short : value
  }
  const values = new Map(Object.entries(labels).map(([raw, value]) => [Number(raw), value]))
  const raws = new Map([...values].map(([raw, value]) => [value, raw]))
  const isLabelled = values.size > 0
  const [a, b] = [toNumber(min), toNumber(max)]
  const expected = isLabelled
    ? `expected one of ${[...values.values()].slice(0, 20).map((value) => JSON.stringify(value)).join(", ")}`
    : `expected a number from ${Math.min(a, b)} to ${Math.max(a, b)}`

  const toRaw = (value: Json | undefined): number | undefined => {
    if (typeof value === "object" || value === undefined) return undefined
    const labelled = raws.get(value)
    if (labelled !== undefined) return labelled
    if (isLabelled && otherwise !== undefined) return otherwise
    const number = typeof value === "boolean" ? Number(value) : value
    if (typeof number !== "number") return undefined
    return Math.round((number - offset) / scale)
  }

  return {
    toValue: (raw: number): Json => values.get(raw) ?? toNumber(raw),
    toRaw: ({ path, value }: Source): number => {
      const raw = toRaw(value)
      // A comparison with NaN is false.
      if (raw === undefined || !(raw >= min && raw <= max)) throw new CodecMisfit({ path, expected })
      return raw
    }
  }
}

/** Whole numbers of 1 to 8 bytes. */
export const integerLayout = (part: IntegerPart, path: string): ValueLayout => {
  const { endian, size, type } = part
  const little = endian === "little"
  const isSigned = type === "int"
  const scaling = compileScaling(part, rangeOf(8 * size, isSigned))
  return {
    min: size,
    fixed: size,
    read: (reader) => {
      const raw = isSigned ? reader.int(size, little, path) : reader.uint(size, little, path)
      if (!Number.isSafeInteger(raw)) throw new CodecMisfit({ path, expected: "expected a number below 2^53" })
      return scaling.toValue(raw)
    },
    write: (writer, source) => writer.integer(scaling.toRaw(source), size, little)
  }
}

/** The id of a message, of which a place keeps the low bits. */
export const idLayout = (part: IntegerPart, path: string): ValueLayout => {
  const plain = integerLayout(part, path)
  return {
    ...plain,
    write: (writer, { path, value }) => {
      const id = typeof value === "number" || typeof value === "string" ? Number(value) : Number.NaN
      if (!Number.isSafeInteger(id) || id < 0) throw new CodecMisfit({ path, expected: "expected a whole number" })
      const kept = part.size >= 7 ? id : id % 2 ** (8 * part.size)
      plain.write(writer, new Source(kept, path))
    }
  }
}

/** IEEE 754 numbers of 4 or 8 bytes. */
export const floatLayout = ({ endian, size }: FloatPart, path: string): ValueLayout => {
  const little = endian === "little"
  return {
    min: size,
    fixed: size,
    read: (reader) => {
      const value = reader.float(size, little, path)
      if (!Number.isFinite(value)) throw new CodecMisfit({ path, expected: "expected a finite number" })
      return size === 4 ? shortest(value) : value
    },
    write: (writer, { path, value }) => {
      if (typeof value !== "number" || !Number.isFinite(size === 4 ? Math.fround(value) : value)) {
        throw new CodecMisfit({ path, expected: "expected a number that the part can hold" })
      }
      writer.float(value, size, little)
    }
  }
}

/** Returns the shortest decimal number that 4 bytes hold as this one: 0.1, not 0.10000000149011612. */
const shortest = (value: number): number => {
  for (let precision = 6; precision <= 9; precision++) {
    const short = Number(value.toPrecision(precision))
    if (Math.fround(short) === value) return short
  }
  return value
}

/** Compiles one field of a group of bits. */
const compileField = (field: BitField, path: string) => {
  const { bit, signed = false, to, width = 1 } = field
  const members = to.split(".")
  const span = 2 ** width
  const scaling = compileScaling(field, rangeOf(width, signed))
  const has = (from: Source) => from.peek(members) !== undefined
  return {
    read: (word: number) => {
      const raw = Math.floor(word / 2 ** bit) % span
      return scaling.toValue(signed && raw >= span / 2 ? raw - span : raw)
    },
    /** Returns what the field adds to the number. */
    write: (from: Source): number => {
      const source = from.take(members)
      const raw = scaling.toRaw(source.value === undefined ? new Source(field.default, source.path) : source)
      return (raw < 0 ? raw + span : raw) * 2 ** bit
    },
    members,
    path,
    has,
    applies: (from: Source) => field.default !== undefined || has(from)
  }
}

/** Several values in the bits of one number. */
export const bitsLayout = ({ endian, fields, size }: BitsPart, path: string): Layout => {
  const little = endian === "little"
  const compiled = fields.map((field, i) => compileField(field, `${path}.fields[${i}]`))
  return {
    min: size,
    fixed: size,
    read: (reader, into) => {
      const word = reader.uint(size, little, path)
      for (const { members, path, read } of compiled) {
        reader.countValue(path)
        put(into, members, read(word), path)
      }
    },
    write: (writer, from) => writer.integer(compiled.reduce((word, { write }) => word + write(from), 0), size, little),
    applies: (from) => compiled.every(({ applies }) => applies(from)),
    touches: (from) => compiled.some(({ has }) => has(from))
  }
}
