/**
 * Waiting for what becomes true by itself: a status, a record, a process.
 */
import { Cause, Clock, Duration, Effect, Exit, Option } from "effect"

export interface EventuallyOptions<A> {
  /** The value that is waited for. Default: any. */
  readonly until?: (value: A) => boolean
  /** How long to wait at most. Default 30 seconds. */
  readonly timeout?: Duration.Input
  /** The pause between two checks. Default 5 milliseconds. */
  readonly interval?: Duration.Input
}

/**
 * Repeats a check until it succeeds with the value that is waited for, and
 * returns that value. A check may fail or throw: it is repeated all the same.
 * After the timeout, `eventually` fails with what the last check failed with;
 * if that succeeded with another value, it dies with an error that shows the
 * value. A check that does not end is interrupted at the timeout.
 *
 * It waits on the clock of its fiber: under `TestClock` the test has to move
 * the time.
 *
 * ```ts
 * const device = yield* eventually(readDevice, { until: ({ status }) => status === "offline" })
 * ```
 */
export const eventually = Effect.fnUntraced(function*<A, E, R>(
  check: Effect.Effect<A, E, R>,
  options: EventuallyOptions<A> = {}
): Effect.fn.Return<A, E, R> {
  const { interval = "5 millis", timeout = "30 seconds", until = () => true } = options
  const patience = Duration.fromInputUnsafe(timeout)
  const end = (yield* Clock.currentTimeMillis) + Duration.toMillis(patience)
  const late = (what: string) => Effect.die(new Error(`After ${Duration.format(patience)}, ${what}`))
  let last: Exit.Exit<A, E> | undefined
  while (true) {
    const left = end - (yield* Clock.currentTimeMillis)
    const exit = left > 0 ? yield* Effect.timeoutOption(Effect.exit(check), left) : Option.none()
    if (Option.isNone(exit)) {
      if (last === undefined) return yield* late("the check has not ended")
      return Exit.isFailure(last)
        ? yield* Effect.failCause(last.cause)
        : yield* late(`the value is still ${JSON.stringify(last.value)}`)
    }
    last = exit.value
    if (Exit.isSuccess(last) && until(last.value)) return last.value
    if (Exit.isFailure(last) && Cause.hasInterruptsOnly(last.cause)) return yield* Effect.failCause(last.cause)
    yield* Effect.sleep(interval)
  }
})

/**
 * {@link eventually} for tests without Effect: repeats the check until it
 * returns (or resolves to) the value that is waited for, and resolves to that
 * value. After the timeout it rejects with what the last check threw.
 */
export const eventuallyPromise = <A>(
  check: () => A | Promise<A>,
  options: EventuallyOptions<A> = {}
): Promise<A> => Effect.runPromise(eventually(Effect.promise(async () => await check()), options))
