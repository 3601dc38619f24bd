/**
 * Times of scenes in words, and when they come next: by the rules of the server,
 * with its own code. Loaded when somebody writes or reads a time.
 */
import { nextTime } from "@device-cloud/core"
import { toString } from "cronstrue"
import "cronstrue/locales/zh_CN"
import { now } from "../../api/clock.ts"
import type { Language } from "../../text/text.ts"

/** The expression in words; undefined while it is none. */
export const inWords = (expression: string, language: Language): string | undefined => {
  try {
    return toString(expression.toUpperCase(), { locale: language === "zh" ? "zh_CN" : "en", use24HourTimeFormat: true })
  } catch {
    return undefined
  }
}

/** The next five times, Unix milliseconds; undefined if the expression or the zone is none. */
export const nextTimes = (expression: string, timeZone: string): ReadonlyArray<number> | undefined => {
  const times: Array<number> = []
  try {
    for (let after = now(); times.length < 5;) {
      const next = nextTime(expression, timeZone === "" ? "UTC" : timeZone, after)
      if (next === null) break
      times.push(next)
      after = next
    }
    return times
  } catch {
    return undefined
  }
}
