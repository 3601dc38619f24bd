/**
 * Windows of time that come every day, or on some days of the week, by the clocks
 * of a time zone.
 */
import { DateTime, Schema } from "effect"
import { clockChange, dayMillis, offsetAt } from "./TimeZone.ts"

/** The days of the week, Sunday first, as the clock counts them. */
const days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const

export const Weekday = Schema.Literals(days)
export type Weekday = typeof Weekday.Type

/** Every day. */
export const everyDay: ReadonlyArray<Weekday> = days

export const TimeWindow = Schema.Struct({
  /** `HH:MM`, from `00:00` to `23:59`. */
  start: Schema.String,
  /** `HH:MM`; not part of the window. Not after `start`: on the following day. */
  end: Schema.String,
  /** The days on which the window begins. */
  days: Schema.Array(Weekday)
})
export type TimeWindow = typeof TimeWindow.Type

/** Says how a time of the day is written. */
export const expectedTimeOfDay = "Expected a time of the day, HH:MM from 00:00 to 23:59"

export const isTimeOfDay = (text: string): boolean => /^(?:[01]\d|2[0-3]):[0-5]\d$/.test(text)

const pad = (number: number): string => String(number).padStart(2, "0")

const dayAt = (place: number): Weekday => days[(place + days.length) % days.length]!

/** What the clocks of a time zone show. */
export interface LocalTime {
  /** `HH:MM`. */
  readonly time: string
  readonly day: Weekday
  readonly dayBefore: Weekday
}

/** Returns what the clocks of the time zone, an IANA name, show at `at`, Unix milliseconds. */
export const localTime = (at: number, timeZone: string): LocalTime => {
  const { hour, minute, weekDay } = DateTime.toParts(DateTime.makeZonedUnsafe(at, { timeZone }))
  return { time: `${pad(hour)}:${pad(minute)}`, day: dayAt(weekDay), dayBefore: dayAt(weekDay - 1) }
}

/** Whether the window is open when the clocks show the time. */
export const isOpen = ({ days, end, start }: TimeWindow, { day, dayBefore, time }: LocalTime): boolean => {
  if (start < end) return days.includes(day) && start <= time && time < end
  // It ends on the following day.
  return (days.includes(day) && start <= time) || (days.includes(dayBefore) && time < end)
}

/** Describes the window in words. */
export const describeWindow = ({ days, end, start }: TimeWindow): string =>
  `${start} to ${end}${days.length === everyDay.length ? "" : ` on ${days.join(", ")}`}`

/** Returns when the window opens next by the clocks of the time zone, Unix milliseconds: `at` if it is open then. */
export const nextOpening = (window: TimeWindow, timeZone: string, at: number): number => {
  if (isOpen(window, localTime(at, timeZone))) return at
  const [hour, minute] = window.start.split(":").map(Number) as [number, number]
  let from = at
  // More than a week: summer time may skip an opening.
  for (let days = 0; days <= 15; days++) {
    const until = clockChange(timeZone, from, from + dayMillis)
    const start = (hour * 60 + minute) * 60_000 - offsetAt(from, timeZone)
    const opening = from + ((start - from) % dayMillis + dayMillis) % dayMillis
    // Clocks that are set may show a time in the window at once.
    const found = [opening, until].find((time) => time <= until && isOpen(window, localTime(time, timeZone)))
    if (found !== undefined) return found
    from = until
  }
  return at
}
