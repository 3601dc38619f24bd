/**
 * How long a response may take. One fiber looks after all requests: a timer and
 * a race for each would cost as much as the rest of a short request
 * (docs/decisions/0024-time-limit-of-requests.md).
 */
import { ChurnMap } from "@device-cloud/core"
import { Clock, Effect, type Fiber, Schedule, type Scope } from "effect"
import type { HttpServerRequest } from "effect/http"
import { StorageUnreachable } from "../Failure.ts"

/** Seconds that a response may take. */
const seconds = 15

/** How often the fiber looks for requests that are late. */
const lookEvery = "1 second"

/**
 * Interrupts the fiber of a request when it takes longer than the deadline, up
 * to a second later. Call the result when the request has ended; it returns
 * whether the request was in time.
 */
export type Watch = (fiber: Fiber.Fiber<unknown, unknown>, startedAt: number) => () => boolean

interface Running {
  readonly number: number
  readonly fiber: Fiber.Fiber<unknown, unknown>
  readonly startedAt: number
  isLate: boolean
}

/** Starts the fiber that looks after all requests, in the scope. */
export const make: Effect.Effect<Watch, never, Scope.Scope> = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const running = new ChurnMap<number, Running>()
  let last = 0

  yield* Effect.sync(() => {
    const before = clock.currentTimeMillisUnsafe() - seconds * 1000
    for (const request of running.values()) {
      if (request.startedAt > before) continue
      running.delete(request.number)
      request.isLate = true
      request.fiber.interruptUnsafe()
    }
  }).pipe(Effect.repeat(Schedule.spaced(lookEvery)), Effect.forkScoped)

  return (fiber, startedAt) => {
    const request: Running = { number: ++last, fiber, startedAt, isLate: false }
    running.set(request.number, request)
    return () => {
      running.delete(request.number)
      return !request.isLate
    }
  }
})

/** Uploads have no deadline: they take as long as the client's network needs. */
export const isExempt = ({ headers }: HttpServerRequest.HttpServerRequest): boolean =>
  headers["content-type"]?.startsWith("multipart/") === true

/** The failure of a request that was late; the log names it. */
export const tooLate = (
  { method, url }: HttpServerRequest.HttpServerRequest
): Effect.Effect<typeof StorageUnreachable.Type> =>
  Effect.as(
    Effect.logWarning(`${method} ${url} took longer than ${seconds} seconds`),
    StorageUnreachable.make({
      message: "The storage does not answer; try again later, the request may have been carried out"
    })
  )
