import * as Core from "@device-cloud/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Schema } from "effect"

interface ErrorClass extends Schema.Schema<Error> {
  readonly fields: object
}

const isErrorClass = (value: unknown): value is ErrorClass =>
  typeof value === "function" && value.prototype instanceof Error && "fields" in value

const errors = Object.entries(Core).flatMap(([name, value]) => isErrorClass(value) ? [[name, value] as const] : [])

/** Fields that say which resource an error is about. */
const isName = (field: string) => /^(?:device|of|random|name)$|(?:Id|Key|Name)$/.test(field)

/** Fields that are secrets. */
const isSecret = (field: string) => field === "networkKey" || field === "objectId"

/** Errors whose message is a text that somebody else has written, which may be any text here. */
const repeats = ({ fields }: ErrorClass) => ["message", "issues", "reason", "expected"].some((field) => field in fields)

describe("the errors of the core", () => {
  it("are all looked at", () => assert.isAbove(errors.length, 70))

  for (const [name, error] of errors) {
    it.effect.prop(`${name} says what is wrong, and of which resource`, [error], ([sample]) =>
      Effect.sync(() => {
        assert.isString(sample.message)
        for (const [field, value] of Object.entries(sample)) {
          if (!isName(field) || typeof value !== "string") continue
          assert.include(sample.message, isSecret(field) ? value.slice(0, 8) : value, field)
          // Another field may happen to have the same text.
          const isAlone = Object.values(sample).filter((other) => String(other).includes(value)).length === 1
          if (isSecret(field) && value.length > 8 && isAlone) assert.notInclude(sample.message, value, field)
        }
        if (!repeats(error)) assert.notStrictEqual(sample.message.trim(), "")
      }))
  }
})
