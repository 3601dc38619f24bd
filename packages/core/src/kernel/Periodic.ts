/**
 * What a node does again and again: looks for what is due, for example.
 */
import { Clock, Context, Duration, Effect, type Fiber, type Scope } from "effect"

/**
 * Milliseconds between two looks of a node for what is due: commands that expire,
 * timers of scenes, upgrades, tasks of jobs, turns of bulk commands, add-sessions,
 * subscriptions, counts that other nodes are told. At most 5000: scenes do not fire for
 * times that are 10 seconds ago. Default: 1000.
 */
export const LookInterval = Context.Reference<number>("@device-cloud/core/kernel/LookInterval", {
  defaultValue: () => 1000
})

/** The fiber that does work again and again until the scope closes. */
export type Repeating<R> = Effect.Effect<Fiber.Fiber<never>, never, R | Scope.Scope>

/**
 * Does the work now, and again `pause` after each end, also if it dies: the log says so. A
 * round without work costs half of one of `Effect.repeat(Schedule.spaced(pause))`, and a
 * node has a dozen of them in each second.
 */
export const every = (pause: Duration.Input): <R>(work: Effect.Effect<unknown, never, R>) => Repeating<R> => {
  const duration = Duration.fromInputUnsafe(pause)
  return (work) => {
    const survived = Effect.catchCause(
      work,
      (cause) => Effect.logError("What a node does again and again died", cause)
    )
    return Effect.flatMap(
      Clock.Clock,
      (clock) =>
        Effect.forkScoped(Effect.forever(Effect.andThen(survived, clock.sleep(duration)), { disableYield: true }))
    )
  }
}

/** Calls it now, and again `pause` after each call: nothing but the pause is a step of a fiber. */
export const ticking = (pause: Duration.Input, tick: () => void): Repeating<never> =>
  Effect.flatMap(Clock.Clock, (clock) => {
    const rest = clock.sleep(Duration.fromInputUnsafe(pause))
    tick()
    return Effect.forkScoped(Effect.forever(Effect.map(rest, tick), { disableYield: true }))
  })

/** Does the work now, and again a {@link LookInterval} after each end. */
export const looking = <R>(work: Effect.Effect<unknown, never, R>): Repeating<R> =>
  Effect.flatMap(LookInterval, (millis) => every(millis)(work))

/** Milliseconds that a node waits after a failure to look for what ends when its time is up. */
const pauseMillis = 3000
/** Milliseconds without a look after which the node has been away. */
const awayMillis = 10_000
/** Milliseconds in which devices come back and say what they could not say meanwhile. */
const backMillis = 60_000

/**
 * Looks for what ends when its time is up. A failure is logged with the message, and the
 * node then waits for a moment: what devices have said while the store was away comes
 * first. `isBack`: within the last minute the node has begun, or has failed, or has stood
 * still.
 */
export const lookingForEnds = <E, R>(
  message: string,
  look: (isBack: boolean) => Effect.Effect<unknown, E, R>
): Repeating<R> =>
  Effect.flatMap(Clock.Clock, (clock) => {
    let latest = Number.NEGATIVE_INFINITY
    let since = latest
    return Effect.suspend(() => {
      const now = clock.currentTimeMillisUnsafe()
      if (Math.abs(now - latest) > awayMillis) since = now
      return look(now - since < backMillis)
    }).pipe(
      Effect.map(() => {
        latest = clock.currentTimeMillisUnsafe()
      }),
      Effect.catchCause((cause) => {
        latest = Number.NEGATIVE_INFINITY
        return Effect.andThen(Effect.logWarning(message, cause), Effect.sleep(pauseMillis))
      }),
      looking
    )
  })
