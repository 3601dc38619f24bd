/**
 * How long a response may take. One fiber looks after all requests: a timer and
 * a race for each would cost as much as the rest of a short request
 * (docs/decisions/0024-time-limit-of-requests.md).
 */
import { ChurnMap } from "@device-cloud/core"
import { Clock, Effect, type Fiber, Schedule, type Scope } from "effect"
import { StorageUnreachable } from "../Failure.ts"

/** Seconds that a response may take. */
const seconds = 15

/** Seconds that a request may wait for a device or an event, on top of that. */
const waitSeconds = 30

/** How often the fiber looks for requests that are late. */
const lookEvery = "1 second"

/**
 * Interrupts the fiber of a request when it takes longer than the deadline, up
 * to a second later. Call the result when the request has ended; it returns
 * whether the request was in time.
 */
export type Watch = (
  fiber: Fiber.Fiber<unknown, unknown>,
  startedAt: number,
  /** The path as it is declared; undefined: there is none. */
  route: string | undefined
) => () => boolean

/** The routes of calls, which may wait for the reply of a device, and of reads that may wait for an event. */
const mayWait = (route: string | undefined): boolean =>
  route !== undefined &&
  /\/(?:things\/:device_id\/(?:properties|services\/:service_id|user-messages)|subscriptions\/:subscription_id\/events)$/
    .test(route)

interface Running {
  readonly number: number
  readonly fiber: Fiber.Fiber<unknown, unknown>
  /** Unix milliseconds. */
  readonly deadline: number
  isLate: boolean
}

/** Starts the fiber that looks after all requests, in the scope. */
export const make: Effect.Effect<Watch, never, Scope.Scope> = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const running = new ChurnMap<number, Running>()
  let last = 0

  yield* Effect.sync(() => {
    const now = clock.currentTimeMillisUnsafe()
    for (const request of running.values()) {
      if (request.deadline > now) continue
      running.delete(request.number)
      request.isLate = true
      request.fiber.interruptUnsafe()
    }
  }).pipe(Effect.repeat(Schedule.spaced(lookEvery)), Effect.forkScoped)

  return (fiber, startedAt, route) => {
    const deadline = startedAt + (mayWait(route) ? seconds + waitSeconds : seconds) * 1000
    const request: Running = { number: ++last, fiber, deadline, isLate: false }
    running.set(request.number, request)
    return () => {
      running.delete(request.number)
      return !request.isLate
    }
  }
})

/** The failure of a request that was late; the log has its name. */
export const tooLate = (name: string): Effect.Effect<typeof StorageUnreachable.Type> =>
  Effect.as(
    Effect.logWarning(`${name} took too long`),
    StorageUnreachable.make({
      message: "The storage does not answer; try again later, the request may have been carried out"
    })
  )
