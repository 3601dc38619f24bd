/**
 * The window of time in which devices of a task may begin, by the clocks where
 * the device is. See docs/api/firmware.md.
 */
import { Schema } from "effect"
import { everyDay, isTimeOfDay, nextOpening, type TimeWindow, Weekday } from "../../kernel/TimeWindow.ts"
import { isTimeZone } from "../../kernel/TimeZone.ts"
import type { Assignment } from "./UpgradeTask.ts"

/** The tag in which a device keeps its time zone, an IANA name. */
export const timeZoneTag = "time_zone"

/** `timeZone` counts for devices that have none of their own. */
export interface StartWindow extends TimeWindow {
  /** IANA name. */
  readonly timeZone: string
}

const TimeOfDay = Schema.String.check(
  Schema.makeFilter((text) => isTimeOfDay(text) || "Expected a time of the day, HH:MM from 00:00 to 23:59")
)

/** What a user gives of a window. */
export const StartWindowDraft = Schema.Struct({
  start: TimeOfDay,
  /** Exclusive. Not after `start`: on the following day. */
  end: TimeOfDay,
  /** The days on which it begins. Default: every day. */
  days: Schema.optional(Schema.Array(Weekday).check(Schema.isMaxLength(7)))
})

/** The window that a draft describes. */
export const startWindow = (
  { days = [], end, start }: typeof StartWindowDraft.Type,
  timeZone: string
): StartWindow => ({ start, end, days: everyDay.filter((day) => days.length === 0 || days.includes(day)), timeZone })

/** Returns when the device may begin, Unix milliseconds: `at` if it may begin then. */
export const opensAt = (
  { task: { startWindow: window }, timeZone }: {
    readonly task: { readonly startWindow: StartWindow | null }
    readonly timeZone: string
  },
  at: number
): number => window === null ? at : nextOpening(window, isTimeZone(timeZone) ? timeZone : window.timeZone, at)

/** Whether the device has not begun, and may not begin at `at`. */
export const isEarly = (assignment: Assignment, at: number): boolean =>
  assignment.record.status === "pending" && opensAt(assignment, at) > at

/**
 * Returns when the cloud tells a device whose window opens at `opening`. All
 * devices that wait for the opening are spread, as many a minute as the task
 * allows on average. `chance`: from 0 to 1, another one for each device.
 */
export const turnAfter = (
  { counts, maximumPerMinute }: {
    readonly counts: { readonly pending: number }
    readonly maximumPerMinute: number
  },
  opening: number,
  chance: number
): number => opening + Math.floor(chance * counts.pending / maximumPerMinute * 60_000)
