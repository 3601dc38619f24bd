/**
 * The data types of a thing model, and the values that they admit
 * (docs/protocol/thing-models.md).
 */
import type { InputIssue } from "../kernel/InvalidInput.ts"
import type { Json } from "../kernel/Json.ts"

export interface NumberType {
  readonly type: "int" | "float" | "double"
  readonly min?: number
  readonly max?: number
  /** A hint for user interfaces. The check ignores it. */
  readonly step?: number
  readonly unit?: string
  readonly unitName?: string
}

/** A whole number with a label; `bool` has the numbers 0 and 1. */
export interface LabelledType {
  readonly type: "bool" | "enum"
  /** Number to label. */
  readonly specs: Readonly<Record<string, string>>
}

export interface TextType {
  readonly type: "text"
  /** Bytes in UTF-8, at most. */
  readonly length: number
}

/** Unix milliseconds as text. The check also accepts a number. */
export interface DateType {
  readonly type: "date"
}

export interface StructType {
  readonly type: "struct"
  /** The members, of any type but struct and array. */
  readonly specs: ReadonlyArray<Field>
}

export interface ArrayType {
  readonly type: "array"
  /** Items at most. */
  readonly size: number
  /** The type of the items: a number, text or struct. */
  readonly item: DataType
}

export type DataType = NumberType | LabelledType | TextType | DateType | StructType | ArrayType

/** A member of a struct, or an input or output of an event or service. */
export interface Field {
  readonly id: string
  readonly name: string
  readonly dataType: DataType
}

/** The bounds of type `int`. */
export const int32 = { min: -(2 ** 31), max: 2 ** 31 - 1 }
/** The largest number of type `float`: what 4 bytes hold, rounded. Their greatest is written 3.4028235e38. */
export const maxFloat = 3.402_823_567_797_336_2e38
/** The latest date, Unix milliseconds. */
const maxTime = 8.64e15

/** Why a value does not fit, with a code of docs/protocol/codes.md. */
export class Misfit {
  readonly code: number
  readonly message: string
  /** What was expected, and of which member of the value. */
  readonly issue: InputIssue

  constructor(code: number, message: string, issue: InputIssue = { path: [], message }) {
    this.code = code
    this.message = message
    this.issue = issue
  }

  /** The misfit of an object or array whose member does not fit. */
  static of(member: string | number, { code, issue, message }: Misfit): Misfit {
    const name = typeof member === "number" ? `[${member}]` : member
    return new Misfit(code, `${name}: ${message}`, { ...issue, path: [member, ...issue.path] })
  }
}

/** Returns the value in the form in which it is stored, or why it does not fit. */
export type Check = (value: Json) => Json | Misfit

/** Compiles a type into the check of its values. */
export const compile = (type: DataType): Check => {
  switch (type.type) {
    case "int":
      return compileInt(type)
    case "float":
      return compileReal(type, 6307, maxFloat)
    case "double":
      return compileReal(type, 6322, Number.MAX_VALUE)
    case "bool":
      return checkBool
    case "enum":
      return compileEnum(type)
    case "text":
      return compileText(type)
    case "date":
      return checkDate
    case "struct":
      return compileStruct(type)
    case "array":
      return compileArray(type)
  }
}

const compileInt = ({ max = int32.max, min = int32.min }: NumberType): Check => {
  const misfit = new Misfit(6306, `expected a whole number from ${min} to ${max}`)
  return (value) =>
    typeof value === "number" && value >= min && value <= max && Number.isInteger(value) ? value : misfit
}

const compileReal = ({ max, min, type }: NumberType, code: number, limit: number): Check => {
  const [lower, upper] = [min ?? -limit, max ?? limit]
  const range = min === undefined && max === undefined ? `of type ${type}` : `from ${lower} to ${upper}`
  const misfit = new Misfit(code, `expected a number ${range}`)
  return (value) => typeof value === "number" && value >= lower && value <= upper ? value : misfit
}

const notBool = new Misfit(6308, "expected 0 or 1")
const checkBool: Check = (value) => {
  if (value === 0 || value === 1) return value
  return typeof value === "boolean" ? Number(value) : notBool
}

const compileEnum = ({ specs }: LabelledType): Check => {
  const values = new Set<Json>(Object.keys(specs).map(Number))
  const misfit = new Misfit(6309, `expected one of ${[...values].join(", ")}`)
  return (value) => values.has(value) ? value : misfit
}

const compileText = ({ length }: TextType): Check => {
  const misfit = new Misfit(6310, `expected text of at most ${length} bytes`)
  return (value) => typeof value === "string" && fits(value, length) ? value : misfit
}

/** Whether the text has at most `bytes` bytes in UTF-8. A UTF-16 code unit takes one to three bytes. */
const fits = (text: string, bytes: number): boolean => {
  if (text.length * 3 <= bytes) return true
  if (text.length > bytes) return false
  let size = 0
  for (const character of text) {
    const code = character.codePointAt(0)!
    size += code < 0x80 ? 1 : code < 0x8_00 ? 2 : code < 0x1_00_00 ? 3 : 4
  }
  return size <= bytes
}

const notDate = new Misfit(6311, "expected Unix milliseconds as text")
const checkDate: Check = (value) => {
  if (typeof value === "string") return /^\d{1,16}$/.test(value) && Number(value) <= maxTime ? value : notDate
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= maxTime
    ? String(value)
    : notDate
}

const compileStruct = ({ specs }: StructType): Check => {
  const check = compileFields(specs)
  const misfit = new Misfit(6312, "expected an object")
  return (value) =>
    typeof value === "object" && value !== null && !Array.isArray(value) ? check(value as Members) : misfit
}

const compileArray = ({ item, size }: ArrayType): Check => {
  const check = compile(item)
  const notArray = new Misfit(6328, "expected an array")
  const tooLong = new Misfit(6324, `expected at most ${size} items`)
  return (value) => {
    if (!Array.isArray(value)) return notArray
    if (value.length > size) return tooLong
    const items: Array<Json> = []
    for (const element of value as ReadonlyArray<Json>) {
      const checked = check(element)
      if (checked instanceof Misfit) return Misfit.of(items.length, { ...checked, code: 6325 })
      items.push(checked)
    }
    return items
  }
}

/** The members of an object, name to value. */
export type Members = Readonly<Record<string, Json>>

/**
 * Compiles a list of fields into the check of an object: each member must be one
 * of the fields. With `all`, no field may be missing.
 */
export const compileFields = (
  fields: ReadonlyArray<Field>,
  all = false
): (members: Members) => { readonly [id: string]: Json } | Misfit => {
  const checks = new Map(fields.map(({ dataType, id }) => [id, compile(dataType)]))
  return (members) => {
    const kept: Record<string, Json> = {}
    for (const id of Object.keys(members)) {
      const check = checks.get(id)
      if (check === undefined) {
        const issue = { path: [id], message: "the thing model has no such member" }
        return new Misfit(6304, `tsl parse: params not exist -> ${id}`, issue)
      }
      const checked = check(members[id]!)
      if (checked instanceof Misfit) return Misfit.of(id, checked)
      kept[id] = checked
    }
    if (all) {
      const missing = fields.find(({ id }) => !Object.hasOwn(kept, id))
      if (missing !== undefined) return Misfit.of(missing.id, new Misfit(6302, "expected a value"))
    }
    return kept
  }
}
