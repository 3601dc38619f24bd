/**
 * What of the protocol works: one line for each check.
 */
import { Effect, Schema } from "effect"

/** The outcome of a check. */
export interface Outcome {
  readonly name: string
  readonly result: "works" | "fails" | "not supported" | "skipped"
  /** What was seen, or why not. */
  readonly detail: string
}

/** Hears of each outcome as it comes. */
export type Report = (outcome: Outcome) => Effect.Effect<void>

/** Something was not as the protocol says. */
export class Unexpected extends Schema.TaggedError<Unexpected>()("Unexpected", {
  /** What was expected, and what came. */
  message: Schema.String
}) {}

/** The other side has never tried to do it. It may do without. */
export class NotSupported extends Schema.TaggedError<NotSupported>()("NotSupported", {
  /** How that was seen. */
  message: Schema.String
}) {}

/** Fails unless two JSON values are the same. */
export const expectSame = (what: string, actual: unknown, expected: unknown): Effect.Effect<void, Unexpected> =>
  JSON.stringify(actual) === JSON.stringify(expected)
    ? Effect.void
    : Effect.fail(
      new Unexpected({ message: `${what}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}` })
    )

/** Runs one check. Its value is what was seen; whatever goes wrong, or has no end within 30 seconds, is reported. */
export const check = <R>(
  report: Report,
  name: string,
  run: Effect.Effect<string | void, unknown, R>
): Effect.Effect<boolean, never, R> =>
  Effect.matchEffect(
    Effect.timeoutOrElse(Effect.catchDefect(run, (defect) => Effect.fail(defect)), {
      duration: "30 seconds",
      orElse: () => Effect.fail(new Unexpected({ message: "no end within 30 seconds" }))
    }),
    {
      onSuccess: (detail) => Effect.as(report({ name, result: "works", detail: detail ?? "" }), true),
      onFailure: (error) =>
        Effect.as(
          report({
            name,
            result: error instanceof NotSupported ? "not supported" : "fails",
            detail: error instanceof Error ? error.message : String(error)
          }),
          false
        )
    }
  )

/** Reports a check that was not made. */
export const skip = (report: Report, name: string, detail: string): Effect.Effect<void> =>
  report({ name, result: "skipped", detail })
