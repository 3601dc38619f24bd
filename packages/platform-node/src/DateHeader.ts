/**
 * The header `Date` of responses: the time of the cloud, which devices without a clock
 * read there (docs/protocol/http-uplink.md). Node.js writes that of the system, which
 * another server of the cloud, or the database, may not have.
 */
import type { Clock } from "effect"

/** Returns a function that returns the value of the header now. It is made once in a second. */
export const makeDate = (clock: Clock.Clock): () => string => {
  let second = Number.NaN
  let text = ""
  return () => {
    const now = Math.floor(clock.currentTimeMillisUnsafe() / 1000)
    if (now !== second) {
      second = now
      text = new Date(now * 1000).toUTCString()
    }
    return text
  }
}
