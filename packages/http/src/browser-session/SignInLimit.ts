/**
 * Limits how often an address may try to sign in, before anything is looked up.
 */
import { RateWindow } from "@device-cloud/core"
import { Clock, Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { TooManyRequests } from "../Failure.ts"
import { countedAddress } from "../middleware/ClientAddress.ts"

/** Attempts of an address in a row, without success, within the window. */
const limit = 50
/** Milliseconds. */
const window = 60_000
/** Addresses that are counted. */
const capacity = 100_000

/**
 * Makes a function that runs an attempt. It fails with `TooManyRequests` while its
 * address has made too many attempts, and counts those that are under way. One that
 * succeeds forgets those before it.
 */
export const make = Effect.map(Clock.Clock, (clock) => {
  const attempts = new RateWindow({ limit, window, capacity })
  return <A, E, R>(
    request: HttpServerRequest.HttpServerRequest,
    attempt: Effect.Effect<A, E, R>
  ): Effect.Effect<A, E | typeof TooManyRequests.Type, R> =>
    Effect.suspend((): Effect.Effect<A, E | typeof TooManyRequests.Type, R> => {
      const address = countedAddress(request)
      const now = clock.currentTimeMillisUnsafe()
      const left = attempts.fullUntil(address) - now
      if (left > 0) {
        const message = "Too many attempts to sign in from this address; try again later"
        return Effect.fail(TooManyRequests.make({ message, data: { retry_after: Math.ceil(left / 1000) } }))
      }
      attempts.hit(address, now)
      return Effect.tap(attempt, () => Effect.sync(() => attempts.forget(address)))
    })
})
