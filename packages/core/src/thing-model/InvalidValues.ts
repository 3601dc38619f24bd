/**
 * Values from the application that do not fit the thing model of the device.
 */
import { Effect, Schema } from "effect"
import { DomainError } from "../kernel/DomainError.ts"
import { InputIssue, issuesText } from "../kernel/InvalidInput.ts"
import type { Json } from "../kernel/Json.ts"
import { Misfit } from "./DataType.ts"

/** Values do not fit the thing model. `issues` names each of them and says what was expected. */
export class InvalidValues extends DomainError<InvalidValues>()(
  "InvalidValues",
  {
    issues: Schema.NonEmptyArray(InputIssue)
  },
  ({ issues }) => issuesText(issues)
) {}

type Values = Readonly<Record<string, Json>>

/**
 * Checks each value. Returns the values in the form in which they are stored.
 * Fails with one issue for each value that does not fit; `path` leads to the
 * values.
 */
export const checkValues = (
  values: Values,
  check: (id: string, value: Json) => Json | Misfit,
  path: ReadonlyArray<string> = ["params"]
): Effect.Effect<Values, InvalidValues> => {
  const checked = Object.entries(values).map(([id, value]) => [id, check(id, value)] as const)
  const [first, ...rest] = checked.flatMap(([id, value]) =>
    value instanceof Misfit ? [{ path: [...path, id, ...value.issue.path], message: value.issue.message }] : []
  )
  return first === undefined
    ? Effect.succeed(Object.fromEntries(checked) as Values)
    : Effect.fail(new InvalidValues({ issues: [first, ...rest] }))
}
