/**
 * Knows when this process has stood still: frozen, or busy with something else. Other
 * nodes may have taken devices over meanwhile, and what this one is about to do may
 * have been done (docs/ownership.md, C5).
 */
import { Clock, Effect, Latch, type Scope } from "effect"
import * as Periodic from "../kernel/Periodic.ts"

/** Milliseconds between two signs of life. */
const tickEvery = 500

/** So many milliseconds without one are a standstill: fewer than a new owner of a device waits for the one before. */
const limit = 950

/**
 * Runs `check` after each standstill, while the scope is open. The returned function
 * returns undefined if there was none; otherwise an effect that waits until `check`
 * has ended.
 */
export const make = Effect.fnUntraced(function*(
  check: Effect.Effect<void>
): Effect.fn.Return<() => Effect.Effect<void> | undefined, never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const scope = yield* Effect.scope
  const latch = Latch.makeUnsafe(true)
  let [lastSign, checks] = [clock.currentTimeMillisUnsafe(), 0]

  const checked = Effect.ensuring(
    check,
    Effect.suspend(() => --checks === 0 ? latch.open : Effect.void)
  )
  const runIn = Effect.runForkWith(yield* Effect.context<never>())

  const doubt = (): Effect.Effect<void> | undefined => {
    const now = clock.currentTimeMillisUnsafe()
    if (now - lastSign > limit) {
      checks++
      latch.closeUnsafe()
      runIn(Effect.forkIn(checked, scope))
    }
    lastSign = now
    return checks === 0 ? undefined : latch.await
  }

  yield* Periodic.ticking(tickEvery, doubt)
  return doubt
})
