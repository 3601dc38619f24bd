/**
 * Reads a document member by member and collects the issues.
 */
import { Predicate } from "effect"
import type { InputIssue } from "../../kernel/InvalidInput.ts"

export type Path = InputIssue["path"]

export type Members = Readonly<Record<string, unknown>>

/** Issues that are collected, at most. */
const maxIssues = 100

/** Each method reads a value at `path`. If the value is wrong, it adds an issue and returns a neutral value. */
export class Document {
  readonly issues: Array<InputIssue> = []

  /** Adds an issue. */
  refuse(path: Path, message: string): undefined {
    if (this.issues.length < maxIssues) this.issues.push({ path, message })
    return undefined
  }

  /** Reads an object. */
  members(value: unknown, path: Path): Members | undefined {
    return Predicate.isObject(value) ? value as Members : this.refuse(path, "expected an object")
  }

  /** Reads an array; absent: empty. */
  list(value: unknown, path: Path): ReadonlyArray<unknown> {
    if (value === undefined || value === null) return []
    if (Array.isArray(value)) return value
    this.refuse(path, "expected an array")
    return []
  }

  /** Reads text of 1 to `max` characters that is not blank. */
  text(value: unknown, path: Path, max: number): string {
    if (typeof value === "string" && value.trim() !== "" && value.length <= max) return value
    this.refuse(path, `expected text of 1 to ${max} characters`)
    return ""
  }

  /** Reads text of at most `max` characters; absent: empty. */
  optionalText(value: unknown, path: Path, max: number): string {
    return value === undefined || value === null || value === "" ? "" : this.text(value, path, max)
  }

  /** Reads true or false; absent: false. */
  optionalBoolean(value: unknown, path: Path): boolean {
    if (value === undefined || value === null) return false
    if (typeof value === "boolean") return value
    this.refuse(path, "expected true or false")
    return false
  }

  /** Reads one of `values`; absent: `absent`, if it is given. */
  oneOf<const A extends string>(value: unknown, path: Path, values: ReadonlyArray<A>, absent?: A): A {
    if (value === undefined && absent !== undefined) return absent
    if (values.includes(value as A)) return value as A
    this.refuse(path, `expected one of ${values.join(", ")}`)
    return values[0]!
  }

  /** Reads a number, also as text; absent or empty: undefined. */
  optionalNumber(
    value: unknown,
    path: Path,
    range: { readonly min: number; readonly max: number; readonly whole: boolean }
  ): number | undefined {
    if (value === undefined || value === null || value === "") return undefined
    const number = typeof value === "string" && value.trim() === value ? Number(value) : value
    if (
      typeof number === "number" && number >= range.min && number <= range.max &&
      (!range.whole || Number.isInteger(number))
    ) {
      return number
    }
    return this.refuse(path, `expected a ${range.whole ? "whole " : ""}number from ${range.min} to ${range.max}`)
  }
}
