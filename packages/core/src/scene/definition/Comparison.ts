/**
 * Comparisons of a value with a text that the maker of a scene gives
 * (docs/api/scenes.md).
 */
import { Schema } from "effect"
import type { Json } from "../../kernel/Json.ts"
import type { DataType } from "../../thing-model/DataType.ts"

export const CompareType = Schema.Literals(["==", "!=", ">", ">=", "<", "<=", "between", "in", "notIn", "like"])
export type CompareType = typeof CompareType.Type

export const Comparison = Schema.Struct({
  type: CompareType,
  /** If both sides are numeric, they compare as numbers; otherwise both compare as text. */
  value: Schema.String
})
export interface Comparison extends Schema.Schema.Type<typeof Comparison> {}

/** One side of a comparison. */
interface Operand {
  readonly text: string
  /** NaN: the text is not numeric. */
  readonly number: number
}

/** Devices choose the text: matching takes time that grows with its length and no faster. */
const numeric = /^\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?\s*$/i

const numberOf = (text: string): number => numeric.test(text) ? Number(text) : Number.NaN

const textOperand = (text: string): Operand => ({ text, number: numberOf(text) })

/** The side that the maker of the scene gives. */
interface Given extends Operand {
  /** 1 for `true` and 0 for `false`, which count as numbers beside values that are not text; otherwise NaN. */
  readonly word: number
}

const words: ReadonlyMap<string, number> = new Map([["true", 1], ["false", 0]])

const given = (text: string): Given => ({ word: words.get(text.trim()) ?? Number.NaN, ...textOperand(text) })

const valueOperand = (value: Json): Operand => {
  switch (typeof value) {
    case "string":
      return textOperand(value)
    case "number":
      return { text: String(value), number: value }
    case "boolean":
      return { text: String(value), number: Number(value) }
    default:
      return { text: JSON.stringify(value), number: Number.NaN }
  }
}

/** Returns a negative number, zero or a positive number if the value stands before, with or after what is given. */
const orderOperand = (value: Json, left: Operand, right: Given): number => {
  const number = Number.isNaN(right.number) && typeof value !== "string" ? right.word : right.number
  if (!Number.isNaN(left.number) && !Number.isNaN(number)) return left.number - number
  return left.text === right.text ? 0 : left.text < right.text ? -1 : 1
}

const order = (value: Json, right: Given): number =>
  typeof value === "number" && !Number.isNaN(right.number)
    ? value - right.number
    : orderOperand(value, valueOperand(value), right)

const isText = (value: unknown): value is string | number | boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean"

/** Returns the members of `a,b,c` or of a JSON array; undefined: the array holds something else. */
const membersOf = (text: string): ReadonlyArray<string> | undefined => {
  const trimmed = text.trim()
  if (trimmed === "") return []
  if (!trimmed.startsWith("[")) return trimmed.split(",").map((member) => member.trim())
  try {
    const members: unknown = JSON.parse(trimmed)
    return Array.isArray(members) && members.every(isText) ? members.map(String) : undefined
  } catch {
    return undefined
  }
}

const bitsOfWord = 32

/**
 * Returns whether the text fits the pattern, in which `%` stands for any text and
 * `_` for one character. It follows all ways to read the text at once, with one
 * bit for each character of the pattern, so that no pattern and no text make it
 * slow.
 */
const isLike = (text: string, pattern: string): boolean => {
  const wanted = pattern.replaceAll("%", "")
  const size = Math.floor(wanted.length / bitsOfWord) + 1
  const setBit = (set: Int32Array, bit: number): void => {
    set[bit >>> 5]! |= 1 << (bit & 31)
  }
  /** For each character: the places in the pattern where it stands, as the bit after each place. */
  const steps = new Map<string, Int32Array>()
  const anyStep = new Int32Array(size)
  /** The places in the pattern where any text may follow. */
  const stays = new Int32Array(size)
  let count = 0
  for (const character of pattern) {
    if (character === "%") setBit(stays, count)
    else if (character === "_") setBit(anyStep, ++count)
    else {
      const step = steps.get(character) ?? new Int32Array(size)
      steps.set(character, step)
      setBit(step, ++count)
    }
  }
  /** The places in the pattern that the text read so far may have reached. */
  const read = new Int32Array(size)
  setBit(read, 0)
  for (const character of text) {
    const step = steps.get(character)
    let carry = 0
    let some = 0
    for (let word = 0; word < size; word++) {
      const before = read[word]!
      const allowed = anyStep[word]! | (step === undefined ? 0 : step[word]!)
      const after = ((before << 1 | carry) & allowed) | (before & stays[word]!)
      carry = before >>> 31
      read[word] = after
      some |= after
    }
    if (some === 0) return false
  }
  return (read[count >>> 5]! & 1 << (count & 31)) !== 0
}

export type Compare = (value: Json) => boolean

const compileOrder = (type: "==" | "!=" | ">" | ">=" | "<" | "<=", right: Given): Compare => {
  switch (type) {
    case "==":
      return (value) => order(value, right) === 0
    case "!=":
      return (value) => order(value, right) !== 0
    case ">":
      return (value) => order(value, right) > 0
    case ">=":
      return (value) => order(value, right) >= 0
    case "<":
      return (value) => order(value, right) < 0
    case "<=":
      return (value) => order(value, right) <= 0
  }
}

/** Makes a function of the comparison. A comparison that `refuseComparison` refuses never holds. */
export const compileComparison = ({ type, value: text }: Comparison): Compare => {
  if (refuseComparison({ type, value: text }) !== undefined) return () => false
  switch (type) {
    case "==":
    case "!=":
    case ">":
    case ">=":
    case "<":
    case "<=":
      return compileOrder(type, given(text))
    case "between": {
      const [from, to] = membersOf(text)!.map(given) as [Given, Given]
      return (value) => order(value, from) >= 0 && order(value, to) <= 0
    }
    case "in":
    case "notIn": {
      const members = membersOf(text)!.map(given)
      const isIn = (value: Json) => {
        const operand = valueOperand(value)
        return members.some((member) => orderOperand(value, operand, member) === 0)
      }
      return type === "in" ? isIn : (value) => !isIn(value)
    }
    case "like":
      // Without a wildcard, `like` means contains.
      return /[%_]/.test(text)
        ? (value) => isLike(valueOperand(value).text, text)
        : (value) => valueOperand(value).text.includes(text)
  }
}

/** Returns why no value can be compared with the text in this way; undefined: some can. */
export const refuseComparison = ({ type, value }: Comparison): string | undefined => {
  switch (type) {
    case "between":
      return membersOf(value)?.length === 2 && membersOf(value)!.every((member) => member !== "")
        ? undefined
        : "Expected two bounds for between, as a,b or [a,b]"
    case "in":
    case "notIn": {
      const count = membersOf(value)?.length ?? 0
      return count > 0 ? undefined : `Expected at least one value for ${type}, as a,b,c or a JSON array`
    }
    default:
      return value === "" ? `Expected a value for ${type}` : undefined
  }
}

const operandsOf = ({ type, value }: Comparison): ReadonlyArray<string> =>
  type === "between" || type === "in" || type === "notIn" ? membersOf(value) ?? [] : [value]

const isNumeric = (text: string): boolean => !Number.isNaN(numberOf(text))

const isOrdering = (type: CompareType): boolean => [">", ">=", "<", "<=", "between"].includes(type)

/** The parameter that does not fit a type, and why. */
export interface Unfit {
  readonly param: "compare_type" | "compare_val"
  readonly message: string
}

const unfitType = (message: string): Unfit => ({ param: "compare_type", message })
const unfitValue = (message: string): Unfit => ({ param: "compare_val", message })

/** Returns why values of the type cannot be compared in this way; undefined: they can. */
export const misfitOfType = (comparison: Comparison, dataType: DataType): Unfit | undefined => {
  const { type } = comparison
  const operands = operandsOf(comparison)
  const unlessNumbers = () =>
    operands.every(isNumeric) ? undefined : unfitValue(`Expected numbers for the type ${dataType.type}`)
  const noLike = unfitType(`Expected another compare_type than like for the type ${dataType.type}`)
  switch (dataType.type) {
    case "int":
    case "float":
    case "double":
    case "date":
      return type === "like" ? noLike : unlessNumbers()
    case "bool":
      if (isOrdering(type) || type === "like") {
        return unfitType(`Expected ==, !=, in or notIn for the type bool, not ${type}`)
      }
      return operands.every((operand) => /^(?:0|1|true|false)$/.test(operand.trim()))
        ? undefined
        : unfitValue("Expected 0, 1, true or false for the type bool")
    case "enum": {
      if (type === "like") return noLike
      if (isOrdering(type)) return unlessNumbers()
      const values = new Set(Object.keys(dataType.specs).map(Number))
      return operands.every((operand) => values.has(numberOf(operand)))
        ? undefined
        : unfitValue(`Expected one of the values of the enum: ${[...values].join(", ")}`)
    }
    case "text":
      return undefined
    case "struct":
    case "array":
      return unfitType(`Expected no comparison: values of the type ${dataType.type} are not compared`)
  }
}
