/**
 * Input that breaks a rule of the domain.
 */
import { Effect, Schema, SchemaIssue } from "effect"
import { isJsonObject } from "./Json.ts"

/** One place of the input, and what is wrong there. */
export const InputIssue = Schema.Struct({
  /** Field names and array positions from the root of the input. */
  path: Schema.Array(Schema.Union([Schema.String, Schema.Finite])),
  /** A sentence that says what was expected. */
  message: Schema.String
})
export type InputIssue = typeof InputIssue.Type

/** The input breaks a rule; nothing has changed. `issues` names each field and says what was expected. */
export class InvalidInput extends Schema.TaggedError<InvalidInput>()("InvalidInput", {
  issues: Schema.NonEmptyArray(InputIssue)
}) {
  /** One field is wrong. */
  static of(field: string, message: string): InvalidInput {
    return new InvalidInput({ issues: [{ path: [field], message }] })
  }

  override get message(): string {
    return issuesText(this.issues)
  }
}

/** Issues on one line, each with its path. */
export const issuesText = (issues: ReadonlyArray<InputIssue>): string =>
  issues.map(({ message, path }) => path.length === 0 ? message : `${path.join(".")}: ${message}`).join("; ")

/** Fails unless the values at `path` are an object: a program may give what its compiler has not seen. */
export const expectObject = (values: object, path: InputIssue["path"]): Effect.Effect<void, InvalidInput> =>
  isJsonObject(values)
    ? Effect.void
    : Effect.fail(new InvalidInput({ issues: [{ path, message: "Expected an object" }] }))

const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()

/** Returns the places where a value does not fit its schema, at least one. */
export const inputIssues = (error: Schema.SchemaError): readonly [InputIssue, ...Array<InputIssue>] => {
  const [first = { path: [], message: error.message }, ...rest] = formatIssue(error.issue).issues.map(
    ({ message, path = [] }): InputIssue => ({
      path: path.map((segment) => {
        const key = typeof segment === "object" ? segment.key : segment
        return typeof key === "number" ? key : String(key)
      }),
      message
    })
  )
  return [first, ...rest]
}

/**
 * Returns a function that checks domain input against `schema`. The function
 * drops fields that the schema does not know, and fails with all issues at once.
 */
export const decodeInput = <S extends Schema.ConstraintCodec<unknown, unknown>>(
  schema: S
): (input: S["Type"]) => Effect.Effect<S["Type"], InvalidInput> => {
  const decode = Schema.decodeUnknownEffect(Schema.toType(schema), { errors: "all" })
  return (input) => Effect.mapErrorEager(decode(input), (error) => new InvalidInput({ issues: inputIssues(error) }))
}
