/**
 * The description of a product's messages in bytes (docs/api/codecs.md). It says
 * where each value stands; it holds no code.
 */
import { Schema } from "effect"
import type { Json } from "../kernel/Json.ts"

/** Bytes of one message. */
export const maxMessageBytes = 16_384
/** Messages of one direction. */
export const maxMessages = 32
/** Parts in a whole description. */
export const maxParts = 512
/** Parts around a part. */
export const maxNesting = 8
/** Values that one message may hold. */
export const maxValues = 4096
/** Checksums in one message. */
export const maxChecksums = 4

const count = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

const Hex = Schema.String.check(
  Schema.isPattern(/^(?:[0-9A-Fa-f]{2}){1,256}$/u, { expected: "1 to 256 bytes as hex text" })
)

/** Members of the message, or of the object around, with dots between them. */
const MemberPath = Schema.String.check(
  Schema.isPattern(/^(?!(?:.*\.)?__proto__(?:\.|$))[A-Za-z_][\w:-]{0,63}(?:\.[A-Za-z_][\w:-]{0,63}){0,7}$/u, {
    expected: "a path such as params.temperature: 1 to 8 names with dots between them"
  })
)

const Scalar = Schema.Union([Schema.Finite, Schema.String, Schema.Boolean])

const Endian = Schema.optional(Schema.Literals(["big", "little"]))

const position = { at: Schema.optional(count(0, maxMessageBytes)) }

/** Where the value goes, and what is written if there is none. */
const target = { to: Schema.optional(MemberPath), default: Schema.optional(Scalar) }

/** Values by number. A check of the keys themselves would leave out those that fail it. */
const Labels = Schema.Record(Schema.String, Scalar).check(
  Schema.isMaxProperties(256),
  Schema.makeFilter((labels) =>
    Object.keys(labels).every((name) => /^-?\d{1,16}$/.test(name)) ? undefined : "Expected whole numbers as names"
  )
)

/** How a whole number stands for a value. */
const scaling = {
  scale: Schema.optional(
    Schema.Finite.check(Schema.makeFilter((scale) => scale !== 0 || "Expected a number other than 0"))
  ),
  offset: Schema.optional(Schema.Finite),
  labels: Schema.optional(Labels),
  otherwise: Schema.optional(Schema.Int)
}

const integer = {
  size: count(1, 8),
  endian: Endian,
  ...scaling,
  ...target,
  ...position
}

// A struct has one type, so that what is wrong with a part is said of its type alone.
const UnsignedPart = Schema.Struct({ type: Schema.Literal("uint"), ...integer })
const SignedPart = Schema.Struct({ type: Schema.Literal("int"), ...integer })
export type IntegerPart = typeof UnsignedPart.Type | typeof SignedPart.Type

const FloatPart = Schema.Struct({
  type: Schema.Literal("float"),
  size: Schema.Literals([4, 8]),
  endian: Endian,
  ...target,
  ...position
})
export interface FloatPart extends Schema.Schema.Type<typeof FloatPart> {}

const BitField = Schema.Struct({
  bit: count(0, 31),
  width: Schema.optional(count(1, 32)),
  signed: Schema.optional(Schema.Boolean),
  ...scaling,
  to: MemberPath,
  default: target.default
})
export interface BitField extends Schema.Schema.Type<typeof BitField> {}

const BitsPart = Schema.Struct({
  type: Schema.Literal("bits"),
  size: count(1, 4),
  endian: Endian,
  fields: Schema.Array(BitField).check(Schema.isMinLength(1), Schema.isMaxLength(32)),
  ...position
})
export interface BitsPart extends Schema.Schema.Type<typeof BitsPart> {}

/** A fixed number, a number in front, or all up to the end. */
const Length = Schema.Union([
  count(0, maxMessageBytes),
  Schema.Literal("rest"),
  Schema.Struct({ prefix: Schema.Literals([1, 2, 4]), endian: Endian })
]).annotate({ expected: `a number from 0 to ${maxMessageBytes}, "rest", or {"prefix": 1 | 2 | 4}` })
export type Length = typeof Length.Type

const TextPart = Schema.Struct({
  type: Schema.Literal("text"),
  length: Length,
  encoding: Schema.optional(Schema.Literals(["utf8", "hex"])),
  ...target,
  ...position
})
export interface TextPart extends Schema.Schema.Type<typeof TextPart> {}

const ConstantPart = Schema.Struct({ type: Schema.Literal("constant"), hex: Hex, ...position })
const SkipPart = Schema.Struct({ type: Schema.Literal("skip"), size: count(1, maxMessageBytes), ...position })
const ValuePart = Schema.Struct({ type: Schema.Literal("value"), value: Scalar, to: MemberPath })

const checksums = [
  "sum8",
  "xor8",
  "crc8",
  "crc16-modbus",
  "crc16-arc",
  "crc16-ccitt",
  "crc16-xmodem",
  "crc16-kermit",
  "crc32"
] as const

const polynomial = count(0, 0xffff_ffff)

/** A CRC by its parameters, as catalogues of CRCs name them. */
const CrcParameters = Schema.Struct({
  width: Schema.Literals([8, 16, 32]),
  poly: polynomial,
  init: Schema.optional(polynomial),
  reflect: Schema.optional(Schema.Boolean),
  xor: Schema.optional(polynomial)
})
export interface CrcParameters extends Schema.Schema.Type<typeof CrcParameters> {}

const ChecksumPart = Schema.Struct({
  type: Schema.Literal("checksum"),
  algorithm: Schema.Union([Schema.Literals(checksums), CrcParameters]).annotate({
    expected: `one of ${checksums.join(", ")}, or {"width", "poly"}`
  }),
  endian: Endian,
  from: Schema.optional(count(0, maxMessageBytes)),
  ...position
})
export interface ChecksumPart extends Schema.Schema.Type<typeof ChecksumPart> {}

interface Positioned {
  readonly at?: number | undefined
}

interface Targeted {
  readonly to?: string | undefined
}

type ByteOrder = "big" | "little" | undefined

export interface ObjectPart extends Positioned, Targeted {
  readonly type: "object"
  readonly parts: ReadonlyArray<Part>
}

export interface ArrayPart extends Positioned, Targeted {
  readonly type: "array"
  readonly count: Length
  readonly of: Part
}

export interface SizedPart extends Positioned {
  readonly type: "sized"
  readonly size: 1 | 2 | 4
  readonly endian?: ByteOrder
  readonly adjust?: number | undefined
  readonly parts: ReadonlyArray<Part>
}

export interface ChoicePart extends Positioned {
  readonly type: "choice"
  readonly size: 1 | 2 | 4
  readonly endian?: ByteOrder
  readonly length?: 1 | 2 | 4 | undefined
  readonly repeat?: boolean | undefined
  readonly cases: ReadonlyArray<{ readonly tag: number; readonly parts: ReadonlyArray<Part> }>
}

export type Part =
  | IntegerPart
  | FloatPart
  | BitsPart
  | TextPart
  | typeof ConstantPart.Type
  | typeof SkipPart.Type
  | typeof ValuePart.Type
  | ChecksumPart
  | ObjectPart
  | ArrayPart
  | SizedPart
  | ChoicePart

const Part: Schema.Codec<Part> = Schema.suspend(() => AnyPart)

const Parts = Schema.Array(Part)

const PrefixSize = Schema.Literals([1, 2, 4])

const ObjectPart = Schema.Struct({
  type: Schema.Literal("object"),
  parts: Parts,
  to: target.to,
  ...position
})

const ArrayPart = Schema.Struct({
  type: Schema.Literal("array"),
  count: Length,
  of: Part,
  to: target.to,
  ...position
})

const SizedPart = Schema.Struct({
  type: Schema.Literal("sized"),
  size: PrefixSize,
  endian: Endian,
  adjust: Schema.optional(count(-1024, 1024)),
  parts: Parts,
  ...position
})

const ChoicePart = Schema.Struct({
  type: Schema.Literal("choice"),
  size: PrefixSize,
  endian: Endian,
  length: Schema.optional(PrefixSize),
  repeat: Schema.optional(Schema.Boolean),
  cases: Schema.Array(Schema.Struct({ tag: count(0, 0xffff_ffff), parts: Parts })).check(
    Schema.isMinLength(1),
    Schema.isMaxLength(256)
  ),
  ...position
})

const AnyPart = Schema.Union([
  UnsignedPart,
  SignedPart,
  FloatPart,
  BitsPart,
  TextPart,
  ConstantPart,
  SkipPart,
  ValuePart,
  ChecksumPart,
  ObjectPart,
  ArrayPart,
  SizedPart,
  ChoicePart
]).annotate({
  expected:
    "a part of type uint, int, float, bits, text, constant, skip, value, checksum, object, array, sized or choice"
})

const name = Schema.optional(Schema.String.check(Schema.isMaxLength(64)))

const reportMethod = Schema.String.check(
  Schema.isPattern(/^thing\.event\.(?:property|[A-Za-z0-9_:]{1,100})\.post$/u, {
    expected: "thing.event.property.post or thing.event.{event_id}.post"
  })
)

const commandMethod = Schema.String.check(
  Schema.isPattern(/^thing\.service\.(?:property\.set|[A-Za-z0-9_:]{1,100})$/u, {
    expected: "thing.service.property.set or thing.service.{service_id}"
  })
)

const messages = <const Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.optional(
    Schema.Array(Schema.Struct({ name, ...fields, parts: Parts })).check(Schema.isMaxLength(maxMessages))
  )

export const CodecDescription = Schema.Struct({
  /** What the device reports: property posts and events. */
  reports: messages({ method: reportMethod }),
  /** What the cloud replies to reports. Without a method: to any. */
  receipts: messages({ method: Schema.optional(reportMethod) }),
  /** What the cloud asks of the device. */
  commands: messages({ method: commandMethod }),
  /** What the device replies to commands. Without a method: to any. */
  answers: messages({ method: Schema.optional(commandMethod) })
})
export interface CodecDescription extends Schema.Schema.Type<typeof CodecDescription> {}

/** Who says a message to whom. */
export const CodecDirection = Schema.Literals(["reports", "receipts", "commands", "answers"])
export type CodecDirection = typeof CodecDirection.Type

/** A message as the device protocol writes it in JSON. */
export interface CodecMessage {
  readonly method?: string | undefined
  readonly id?: string | number | undefined
  /** Of receipts and answers; 200: success. */
  readonly code?: number | undefined
  readonly message?: string | undefined
  /** Of reports and commands. */
  readonly params?: Readonly<Record<string, Json>> | undefined
  /** Of receipts and answers. */
  readonly data?: Readonly<Record<string, Json>> | undefined
}

/** Bytes or a message do not fit the description of the product. */
export class CodecMisfit extends Schema.TaggedError<CodecMisfit>()("CodecMisfit", {
  /** The part of the description, or the member of the message; empty: the whole message. */
  path: Schema.String,
  /** What was expected. */
  expected: Schema.String
}) {
  override get message(): string {
    return this.path === "" ? this.expected : `${this.path}: ${this.expected}`
  }
}
