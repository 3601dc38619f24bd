/**
 * The times of an axis, in the language and the zone of the viewer.
 */
import { language } from "../text/text.ts"

const minute = 60
const hour = 3600
const day = 86_400
const month = 28 * day

/**
 * What stands at ticks that lie `step` seconds apart: as much of the time as tells
 * them apart. The first one, and each at which a day begins, names its day below.
 * `ticks` are Unix seconds.
 */
export const namesOf = (ticks: ReadonlyArray<number>, step: number, zone?: string): ReadonlyArray<string> => {
  const format = (options: Intl.DateTimeFormatOptions) => {
    const made = new Intl.DateTimeFormat(language.value, { ...options, timeZone: zone })
    return (tick: number) => made.format(tick * 1000)
  }
  const dayOf = format({ month: "short", day: "numeric" })
  // Where the clocks change at midnight, the tick of a day may lie an hour before the day.
  const inside = ticks.map((tick) => tick + hour)
  if (step >= month) return inside.map(format({ year: "numeric", month: "short" }))
  if (step >= day) return inside.map(dayOf)
  const timeOf = format({ hour: "2-digit", minute: "2-digit", ...step < minute ? { second: "2-digit" } : {} })
  return ticks.map((tick, index) => {
    const isNewDay = index === 0 || dayOf(tick) !== dayOf(ticks[index - 1]!)
    return isNewDay ? `${timeOf(tick)}\n${dayOf(tick)}` : timeOf(tick)
  })
}
