/**
 * How long an answer may take. One fiber looks after all requests: a timer and
 * a race for each would cost as much as the rest of a short one.
 */
import { Clock, Effect, type Fiber, Schedule, type Scope } from "effect"

/** How long the storage may take, and how often that is looked after. */
export const seconds = 15
const lookEvery = "1 second"

/**
 * Begins to look after a fiber that answers, and interrupts it when it takes
 * longer, up to a second more. The result ends that, and says whether it was in time.
 */
export type Watch = (fiber: Fiber.Fiber<unknown, unknown>, startedAt: number) => () => boolean

interface Running {
  readonly fiber: Fiber.Fiber<unknown, unknown>
  readonly startedAt: number
  isLate: boolean
}

export const make: Effect.Effect<Watch, never, Scope.Scope> = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  /** The one that began first comes first. */
  const running = new Set<Running>()

  yield* Effect.sync(() => {
    const before = clock.currentTimeMillisUnsafe() - seconds * 1000
    for (const each of running) {
      if (each.startedAt > before) return
      running.delete(each)
      each.isLate = true
      each.fiber.interruptUnsafe()
    }
  }).pipe(Effect.repeat(Schedule.spaced(lookEvery)), Effect.forkScoped)

  return (fiber, startedAt) => {
    const answer: Running = { fiber, startedAt, isLate: false }
    running.add(answer)
    return () => {
      running.delete(answer)
      return !answer.isLate
    }
  }
})
