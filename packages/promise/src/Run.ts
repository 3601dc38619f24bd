/**
 * Runs Effects for callers that have promises.
 */
import { Cause, type Context, Effect, Exit, Option, Schema, SchemaIssue, Stream } from "effect"
import { rejection } from "./CloudError.ts"
import type { Runner } from "./Promised.ts"

/** Runs with the services of the context, until the signal aborts. */
export const runnerOf = (context: Context.Context<never>, signal: AbortSignal | undefined): Runner =>
  runnerUntil(context, signal === undefined ? [] : [signal], makeEnds())

/** Runs until one of the signals aborts. */
const runnerUntil = (
  context: Context.Context<never>,
  signals: ReadonlyArray<AbortSignal>,
  endsOf: ReturnType<typeof makeEnds>
): Runner => {
  // With an `AbortController` in its place calls would fail, and the end of the cloud would throw where nobody can catch it.
  if (signals.some((signal) => typeof signal?.aborted !== "boolean")) {
    throw new TypeError("signal: expected an AbortSignal, such as the member `signal` of an AbortController")
  }
  const run = Effect.runPromiseExitWith(context)
  const aborted = () => signals.find(({ aborted }) => aborted)
  /** Calls `end` once: when a signal aborts, or now if one has. Returns what forgets that. */
  const onAbort = (end: () => void): () => void => {
    const ends = signals.map(endsOf)
    const forget = () => ends.forEach(({ remove }) => remove(endOnce))
    const endOnce = () => {
      forget()
      end()
    }
    if (aborted() === undefined) ends.forEach(({ add }) => add(endOnce))
    else end()
    return forget
  }
  return {
    promise: async (effect) => {
      aborted()?.throwIfAborted()
      const exit = await run(
        effect,
        signals.length === 0
          ? undefined
          : { onFiberStart: (fiber) => fiber.addObserver(onAbort(() => fiber.interruptUnsafe())) }
      )
      if (Exit.isSuccess(exit)) return exit.value
      if (Cause.hasInterruptsOnly(exit.cause)) aborted()?.throwIfAborted()
      throw thrownFor(exit.cause)
    },
    iterable: (stream) => {
      const failing = Stream.catchCause(
        stream,
        (cause) => Cause.hasInterruptsOnly(cause) ? Stream.failCause(cause) : Stream.fail(thrownFor(cause))
      )
      if (signals.length === 0) return Stream.toAsyncIterableWith(failing, context)
      // Fails when a signal aborts, with its reason.
      const stopped = Effect.callback<never, unknown>((resume) =>
        Effect.sync(onAbort(() => resume(Effect.fail(aborted()?.reason))))
      )
      const ended = (cause: Cause.Cause<unknown>) => {
        const signal = aborted()
        return signal !== undefined && Cause.hasInterruptsOnly(cause)
          ? Stream.fail(signal.reason)
          : Stream.failCause(cause)
      }
      return Stream.toAsyncIterableWith(
        Stream.catchCause(Stream.interruptWhen(failing, stopped), ended),
        context
      )
    },
    withSignal: (signal) => runnerUntil(context, [...signals, signal], endsOf)
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
 * Returns the ends of a signal: what is called when it aborts. They have one listener for all: from the eleventh
 * on, Node.js warns of a leak.
 */
const makeEnds = () => {
  const known = new WeakMap<AbortSignal, ReturnType<typeof make>>()
  const make = (signal: AbortSignal) => {
    const ends = new Set<() => void>()
    const endAll = () => ends.forEach((end) => end())
    return {
      add: (end: () => void) => {
        if (ends.add(end).size === 1) signal.addEventListener("abort", endAll)
      },
      remove: (end: () => void) => {
        ends.delete(end)
        if (ends.size === 0) signal.removeEventListener("abort", endAll)
      }
    }
  }
  return (signal: AbortSignal) => {
    const ends = known.get(signal) ?? make(signal)
    known.set(signal, ends)
    return ends
  }
}
