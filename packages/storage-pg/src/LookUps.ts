/**
 * Many look-ups in one statement: what is asked while one is on its way goes
 * into the next one.
 */
import { Cause, Effect, Exit } from "effect"

/** Keys in one statement. */
const maxKeys = 500

interface Asked<K, V, E> {
  readonly key: K
  readonly resume: (effect: Effect.Effect<V, E>) => void
}

/** `load` answers in the order of the keys. */
export const make = Effect.fnUntraced(function*<K, V, E>(
  load: (keys: ReadonlyArray<K>) => Effect.Effect<ReadonlyArray<V>, E>
) {
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  let waiting: Array<Asked<K, V, E>> = []
  let isLoading = false

  const next = () => {
    isLoading = waiting.length > 0
    if (!isLoading) return
    const asked = waiting.slice(0, maxKeys)
    waiting = waiting.slice(maxKeys)
    runFork(load(asked.map(({ key }) => key))).addObserver((exit) => {
      next()
      asked.forEach(({ resume }, i) =>
        resume(Exit.isSuccess(exit) ? Effect.succeed(exit.value[i]!) : Effect.failCause(withoutInterrupt(exit.cause)))
      )
    })
  }

  return (key: K): Effect.Effect<V, E> =>
    Effect.callback((resume) => {
      waiting.push({ key, resume })
      if (!isLoading) next()
    })
})

/** The end of the program interrupts the look-up, not those who asked. */
const withoutInterrupt = <E>(cause: Cause.Cause<E>): Cause.Cause<E> =>
  Cause.hasInterruptsOnly(cause) ? Cause.die("the look-up was interrupted") : cause
