/**
 * What the log says of something that is tried again and again: each reason once,
 * however long it lasts.
 */
import { Cause, Effect } from "effect"

export interface Outage {
  /** Logs a warning with the error, or the cause, unless an attempt has failed for the same reason since the last success. */
  readonly failed: (error: unknown) => Effect.Effect<void>
  /** Runs an attempt. Its failure, or that it dies, is in the log, as that of `failed`, and nowhere else. */
  readonly attempted: (attempt: Effect.Effect<void, unknown>) => Effect.Effect<void>
  /** It has succeeded. Returns whether it failed before. */
  readonly over: Effect.Effect<boolean>
}

/** How many reasons are known again: a text that differs each time must not take memory for as long as it lasts. */
const knownReasons = 10

export const make = (warning: string): Outage => {
  let known: ReadonlyArray<string> = []
  const failed = (error: unknown) =>
    Effect.suspend(() => {
      const reason = reasonOf(Cause.isCause(error) ? Cause.squash(error) : error)
      if (known.includes(reason)) return Effect.void
      known = [reason, ...known].slice(0, knownReasons)
      return Effect.logWarning(warning, error)
    })
  const over = Effect.sync(() => {
    const hasFailed = known.length > 0
    known = []
    return hasFailed
  })
  return {
    failed,
    attempted: (attempt) =>
      Effect.matchCauseEffect(attempt, {
        onFailure: (cause) => failed(Cause.squash(cause)),
        onSuccess: () => Effect.asVoid(over)
      }),
    over
  }
}

/** The messages of an error and of its causes. */
const reasonOf = (error: unknown): string =>
  error instanceof Error ? `${error.message}\n${error.cause === undefined ? "" : reasonOf(error.cause)}` : String(error)
