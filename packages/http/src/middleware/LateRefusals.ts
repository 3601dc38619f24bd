/**
 * A client that goes on asking while it is refused hears of it late. A refusal costs as
 * much as a short request: a hundred connections that ask again at once take a third of
 * the thread (docs/decisions/0135-refusals-that-come-late.md).
 */
import { Clock, Effect } from "effect"

/** Refusals of an address that leave at once, in a second. */
const atOnce = 20

/** How late the others are: what `retry-after` says at least. */
const delay = "1 second"

/** Refusals that wait, at most. More leave at once: each keeps its request in memory. */
const maxWaiting = 1000

/** Makes a function that waits before a refusal leaves for an address. */
export const make = Effect.map(Clock.Clock, (clock) => {
  /** Refusals by address in this second. */
  const refused = new Map<string, number>()
  let second = 0
  let waiting = 0

  const isEarly = (address: string): boolean => {
    const now = Math.floor(clock.currentTimeMillisUnsafe() / 1000)
    if (now !== second) {
      second = now
      refused.clear()
    }
    const count = (refused.get(address) ?? 0) + 1
    refused.set(address, count)
    return count <= atOnce
  }

  const wait = Effect.acquireUseRelease(
    Effect.sync(() => void waiting++),
    () => Effect.sleep(delay),
    () => Effect.sync(() => void waiting--)
  )

  return (address: string): Effect.Effect<void> =>
    Effect.suspend(() => isEarly(address) || waiting >= maxWaiting ? Effect.void : wait)
})
