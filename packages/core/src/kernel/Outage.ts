/**
 * What the log says of something that is tried again and again: each reason once,
 * however long it lasts.
 */
import { Cause, Effect } from "effect"

export interface Outage {
  /** Logs a warning with the error, or the cause, unless the last attempt failed for the same reason. */
  readonly failed: (error: unknown) => Effect.Effect<void>
  /** Runs an attempt. Its failure is in the log, as that of `failed`, and nowhere else. */
  readonly attempted: (attempt: Effect.Effect<void, unknown>) => Effect.Effect<void>
  /** It has succeeded. Returns whether it failed before. */
  readonly over: Effect.Effect<boolean>
}

export const make = (warning: string): Outage => {
  let latest: string | undefined
  const failed = (error: unknown) =>
    Effect.suspend(() => {
      const reason = reasonOf(Cause.isCause(error) ? Cause.squash(error) : error)
      if (reason === latest) return Effect.void
      latest = reason
      return Effect.logWarning(warning, error)
    })
  const over = Effect.sync(() => {
    const hasFailed = latest !== undefined
    latest = undefined
    return hasFailed
  })
  return {
    failed,
    attempted: (attempt) => Effect.matchEffect(attempt, { onFailure: failed, onSuccess: () => Effect.asVoid(over) }),
    over
  }
}

/** The messages of an error and of its causes. */
const reasonOf = (error: unknown): string =>
  error instanceof Error ? `${error.message}\n${error.cause === undefined ? "" : reasonOf(error.cause)}` : String(error)
