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
      const exit = await run(
        effect,
        signal === undefined ? undefined : {
          onFiberStart: (fiber) => fiber.addObserver(onAbort(signal, () => fiber.interruptUnsafe()))
        }
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
    const forget = onAbort(signal, () => resume(Effect.fail(signal.reason)))
    return Effect.sync(forget)
  })

/** What each signal ends. A signal has one listener for all: from the eleventh on, Node.js warns of a leak. */
const endsOf = new WeakMap<AbortSignal, Set<() => void>>()

/** Calls `end` when the signal aborts, or now if it has. Returns what forgets that. */
const onAbort = (signal: AbortSignal, end: () => void): () => void => {
  if (signal.aborted) {
    end()
    return () => undefined
  }
  const ends = endsOf.get(signal) ?? new Set()
  endsOf.set(signal, ends.add(end))
  signal.addEventListener("abort", endAll)
  return () => {
    ends.delete(end)
    if (ends.size === 0) signal.removeEventListener("abort", endAll)
  }
}

const endAll = ({ currentTarget }: Event): void => endsOf.get(currentTarget as AbortSignal)?.forEach((end) => end())
