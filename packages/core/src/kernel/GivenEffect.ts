/**
 * Effects that functions of an application return.
 */
import { Cause, Effect } from "effect"

/**
 * Runs the effect that `make` returns. Dies if `make` throws, and if it returns
 * something else than an effect, such as a promise: a fiber that ran that would end
 * at once, past everything that catches failures. Dies, too, if the effect ends by an
 * interrupt of its own, such as that of a fiber which it has joined: an interrupt of
 * this fiber is never caught, and everywhere else it stands for the end of the cloud.
 * `name` says whose function it is.
 */
export const given = <A, E, R>(name: string, make: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const effect: unknown = make()
    return Effect.isEffect(effect)
      ? effect as Effect.Effect<A, E, R>
      : Effect.die(new TypeError(`${name} returns ${String(effect)} in place of an Effect`))
  }).pipe(
    Effect.catchCauseIf(Cause.hasInterrupts, (cause) => Effect.die(new Error(`${name} is interrupted`, { cause })))
  )

/**
 * Dies unless `isWanted` accepts what a function of an application has resulted in: programs may give what their
 * compiler has not seen. `name` says whose function it is, `wanted` what it has to result in.
 */
export const resulting =
  <A>(name: string, wanted: string, isWanted: (value: unknown) => boolean) =>
  <E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.tap(
      effect,
      (value) =>
        isWanted(value)
          ? Effect.void
          : Effect.die(new TypeError(`${name} results in ${shown(value)} in place of ${wanted}`))
    )

const shown = (value: unknown): string => {
  try {
    return JSON.stringify(value) ?? String(value)
  } catch {
    return String(value)
  }
}
