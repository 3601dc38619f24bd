/**
 * Work that whoever waits for it may leave at any time. Some work does not end when it
 * is interrupted: a transaction, for example, on a connection that gets no answer.
 */
import { Effect, Fiber } from "effect"

/**
 * Runs the effect in a fiber of its own, as interruptible as the caller. The wait for it
 * can always be interrupted: that interrupts the effect, too, and does not wait for its end.
 */
export const abandonable = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    // Not the exit of the fiber: one that has waited is an old object, and would keep its
    // result until the next full collection (docs/decisions/0137-what-waiting-requests-keep.md).
    let result: { readonly value: A } | undefined
    const noted = Effect.map(effect, (value) => {
      result = { value }
    })
    return Effect.flatMap(
      Effect.forkDetach(noted, { startImmediately: true, uninterruptible: "inherit" }),
      (fiber) =>
        Effect.onInterrupt(Effect.interruptible(Fiber.join(fiber)), () => Effect.sync(() => fiber.interruptUnsafe()))
    ).pipe(Effect.map(() => {
      const { value } = result!
      result = undefined
      return value
    }))
  })
