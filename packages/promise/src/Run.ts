/**
 * Runs Effects for callers that have promises.
 */
import { Cause, type Context, Effect, Exit, Option, Schema, SchemaIssue, Stream } from "effect"
import { rejection } from "./CloudError.ts"
import type { Runner } from "./Promised.ts"

/** Runs with the services of the context, until the signal aborts. */
export const runnerOf = (context: Context.Context<never>, signal: AbortSignal | undefined): Runner => {
  const run = Effect.runPromiseExitWith(context)
  return {
    promise: async (effect) => {
      signal?.throwIfAborted()
      const exit = await run(effect, signal === undefined ? undefined : { signal })
      if (Exit.isSuccess(exit)) return exit.value
      if (Cause.hasInterruptsOnly(exit.cause)) signal?.throwIfAborted()
      throw thrownFor(exit.cause)
    },
    iterable: (stream) => {
      const failing = Stream.catchCause(
        stream,
        (cause) => Cause.hasInterruptsOnly(cause) ? Stream.failCause(cause) : Stream.fail(thrownFor(cause))
      )
      if (signal === undefined) return Stream.toAsyncIterableWith(failing, context)
      const ended = (cause: Cause.Cause<unknown>) =>
        signal.aborted && Cause.hasInterruptsOnly(cause) ? Stream.fail(signal.reason) : Stream.failCause(cause)
      return Stream.toAsyncIterableWith(
        Stream.catchCause(Stream.interruptWhen(failing, aborted(signal)), ended),
        context
      )
    }
  }
}

const thrownFor = (cause: Cause.Cause<unknown>): unknown =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => unexpected(Cause.squash(cause)),
    onSome: rejection
  })

/** JavaScript can give a service what is no id, `"12"` for 12: no error of the domain can be made of it, and one says why. */
const unexpected = (thrown: unknown): unknown =>
  thrown instanceof Error && SchemaIssue.isIssue(thrown.cause)
    ? rejection(new Schema.SchemaError(thrown.cause))
    : thrown

/** Fails when the signal aborts, with its reason. */
const aborted = (signal: AbortSignal): Effect.Effect<never, unknown> =>
  Effect.callback((resume) => {
    const abort = () => resume(Effect.fail(signal.reason))
    if (signal.aborted) return abort()
    signal.addEventListener("abort", abort, { once: true })
    return Effect.sync(() => signal.removeEventListener("abort", abort))
  })
