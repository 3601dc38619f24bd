/**
 * The cron expressions of timers: six fields, seconds first, or five.
 */
import { Cron, Result } from "effect"

/** Reads the expression, or returns why it is not one. It may be one whose time never comes. */
export const parseCron = (expression: string, timeZone: string): Result.Result<Cron.Cron, string> =>
  Result.mapError(
    Cron.parse(expression, timeZone),
    ({ message }) => `Expected a cron expression of six fields, seconds first, or of five (${message})`
  )

/** Returns the next time after `after`, both Unix milliseconds; null: there is none. */
export const nextTime = (expression: string, timeZone: string, after: number): number | null =>
  Result.match(parseCron(expression, timeZone), {
    onFailure: () => null,
    onSuccess: (cron) => {
      try {
        return Cron.next(cron, after).getTime()
      } catch {
        return null
      }
    }
  })
