/**
 * How long an answer may take. One fiber looks after all requests: a timer and
 * a race for each would cost as much as the rest of a short one.
 */
import { ChurnMap } from "@device-cloud/core"
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
  readonly number: number
  readonly fiber: Fiber.Fiber<unknown, unknown>
  readonly startedAt: number
  isLate: boolean
}

export const make: Effect.Effect<Watch, never, Scope.Scope> = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const running = new ChurnMap<number, Running>()
  let last = 0

  yield* Effect.sync(() => {
    const before = clock.currentTimeMillisUnsafe() - seconds * 1000
    for (const answer of running.values()) {
      if (answer.startedAt > before) continue
      running.delete(answer.number)
      answer.isLate = true
      answer.fiber.interruptUnsafe()
    }
  }).pipe(Effect.repeat(Schedule.spaced(lookEvery)), Effect.forkScoped)

  return (fiber, startedAt) => {
    const answer: Running = { number: ++last, fiber, startedAt, isLate: false }
    running.set(answer.number, answer)
    return () => {
      running.delete(answer.number)
      return !answer.isLate
    }
  }
})
