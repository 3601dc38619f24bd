/**
 * Time zones by their IANA names.
 */
import { DateTime, Option } from "effect"

/** Says what a time zone is called. */
export const expectedTimeZone = "Expected the IANA name of a time zone, such as Europe/Berlin"

/** Whether it is the IANA name of a time zone. An offset is none: it knows no summer time. */
export const isTimeZone = (name: string): boolean =>
  /^[A-Za-z]/.test(name) && Option.isSome(DateTime.zoneMakeNamed(name))

export const dayMillis = 86_400_000

/** By how many milliseconds the clocks are ahead of UTC. */
export const offsetAt = (at: number, timeZone: string): number =>
  DateTime.zonedOffset(DateTime.makeZonedUnsafe(at, { timeZone }))

/** Returns when the clocks are set between the two moments, at most two days apart; `until` if they are not. */
export const clockChange = (timeZone: string, from: number, until: number): number => {
  const before = offsetAt(from, timeZone)
  if (offsetAt(until, timeZone) === before) return until
  let [earlier, later] = [from, until]
  while (later - earlier > 1) {
    const middle = Math.floor((earlier + later) / 2)
    if (offsetAt(middle, timeZone) === before) earlier = middle
    else later = middle
  }
  return later
}
