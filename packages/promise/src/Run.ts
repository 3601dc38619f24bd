/**
 * Runs Effects for callers that have promises.
 */
import { Cause, type Context, Effect, Exit, Option, Schema, SchemaIssue, Stream } from "effect"
import { rejection } from "./CloudError.ts"
import type { Runner } from "./Promised.ts"

/** Runs with the services of the context, until the signal aborts. */
export const runnerOf = (context: Context.Context<never>, signal: AbortSignal | undefined): Runner => {
  const run = Effect.runPromiseExitWith(context)
  const onAbort = signal === undefined ? undefined : endingWith(signal)
  return {
    promise: async (effect) => {
      signal?.throwIfAborted()
      const exit = await run(
        effect,
        onAbort && { onFiberStart: (fiber) => fiber.addObserver(onAbort(() => fiber.interruptUnsafe())) }
      )
      if (Exit.isSuccess(exit)) return exit.value
      if (Cause.hasInterruptsOnly(exit.cause)) signal?.throwIfAborted()
      throw thrownFor(exit.cause)
    },
    iterable: (stream) => {
      const failing = Stream.catchCause(
        stream,
        (cause) => Cause.hasInterruptsOnly(cause) ? Stream.failCause(cause) : Stream.fail(thrownFor(cause))
      )
      if (signal === undefined || onAbort === undefined) return Stream.toAsyncIterableWith(failing, context)
      // Fails when the signal aborts, with its reason.
      const aborted = Effect.callback<never, unknown>((resume) =>
        Effect.sync(onAbort(() => resume(Effect.fail(signal.reason))))
      )
      const ended = (cause: Cause.Cause<unknown>) =>
        signal.aborted && Cause.hasInterruptsOnly(cause) ? Stream.fail(signal.reason) : Stream.failCause(cause)
      return Stream.toAsyncIterableWith(
        Stream.catchCause(Stream.interruptWhen(failing, aborted), ended),
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

/**
 * Returns what calls `end` when the signal aborts, or at once if it has, and returns what forgets that. The
 * signal has one listener for all: from the eleventh on, Node.js warns of a leak.
 */
const endingWith = (signal: AbortSignal) => {
  const ends = new Set<() => void>()
  const endAll = () => ends.forEach((end) => end())
  return (end: () => void): () => void => {
    if (signal.aborted) {
      end()
      return () => undefined
    }
    ends.add(end)
    signal.addEventListener("abort", endAll)
    return () => {
      ends.delete(end)
      if (ends.size === 0) signal.removeEventListener("abort", endAll)
    }
  }
}
