/**
 * A value that is written, and what of it has been written.
 */
import type { Json } from "../kernel/Json.ts"

export class Source {
  readonly value: Json | undefined
  /** For example `params.temperature`. */
  readonly path: string
  readonly #written = new Map<string | number, Source>()

  constructor(value: Json | undefined, path = "") {
    this.value = value
    this.path = path
  }

  /** Returns the value without noting that it is written. */
  peek(members: ReadonlyArray<string>): Json | undefined {
    let value = this.value
    for (const member of members) value = memberOf(value, member)
    return value
  }

  /** Returns a member to write. */
  take(members: ReadonlyArray<string | number>): Source {
    return members.reduce<Source>((source, member) => source.#member(member), this)
  }

  /** Returns the path of a member that has not been written; undefined: all have. */
  unwritten(): string | undefined {
    if (typeof this.value !== "object" || this.value === null) return undefined
    for (const member of Array.isArray(this.value) ? this.value.keys() : Object.keys(this.value)) {
      const written = this.#written.get(member)
      const path = written === undefined ? this.#pathOf(member) : written.unwritten()
      if (path !== undefined) return path
    }
    return undefined
  }

  #pathOf(member: string | number): string {
    if (typeof member === "number") return `${this.path}[${member}]`
    return this.path === "" ? member : `${this.path}.${member}`
  }

  #member(member: string | number): Source {
    const known = this.#written.get(member)
    if (known !== undefined) return known
    const source = new Source(memberOf(this.value, member), this.#pathOf(member))
    this.#written.set(member, source)
    return source
  }
}

const memberOf = (value: Json | undefined, member: string | number): Json | undefined =>
  typeof value === "object" && value !== null && Object.hasOwn(value, member)
    ? (value as Readonly<Record<string | number, Json>>)[member]
    : undefined
