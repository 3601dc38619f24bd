/**
 * Values that the application wants a device to have and that its thing model
 * does not admit.
 */
import { Effect, Schema } from "effect"
import { InputIssue } from "../kernel/InvalidInput.ts"
import type { Json } from "../kernel/Json.ts"
import { Misfit } from "./DataType.ts"

export class InvalidValues extends Schema.TaggedError<InvalidValues>()("InvalidValues", {
  issues: Schema.NonEmptyArray(InputIssue)
}) {}

type Values = Readonly<Record<string, Json>>

/** The values as they are stored; fails with all that do not fit. */
export const checkValues = (
  values: Values,
  check: (id: string, value: Json) => Json | Misfit,
  path: ReadonlyArray<string> = ["params"]
): Effect.Effect<Values, InvalidValues> =>
  Effect.suspend(() => {
    const checked = Object.entries(values).map(([id, value]) => [id, check(id, value)] as const)
    const [first, ...rest] = checked.flatMap(([id, value]) =>
      value instanceof Misfit ? [{ path: [...path, id], message: value.message }] : []
    )
    return first === undefined
      ? Effect.succeed(Object.fromEntries(checked) as Values)
      : Effect.fail(new InvalidValues({ issues: [first, ...rest] }))
  })
