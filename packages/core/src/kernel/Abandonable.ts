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
  Effect.flatMap(
    Effect.forkDetach(effect, { startImmediately: true, uninterruptible: "inherit" }),
    (fiber) =>
      Effect.onInterrupt(Effect.interruptible(Fiber.join(fiber)), () => Effect.sync(() => fiber.interruptUnsafe()))
  )
