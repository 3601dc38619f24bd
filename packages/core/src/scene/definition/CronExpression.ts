/**
 * The cron expressions of timers: six fields, seconds first, or five.
 */
import { Cron, Result } from "effect"
import { InvalidInput } from "../../kernel/InvalidInput.ts"
import { clockChange, dayMillis, expectedTimeZone, isTimeZone, offsetAt } from "../../kernel/TimeZone.ts"

/** What Quartz and Spring write and this cloud does not read, with what to write instead. */
const refused: ReadonlyArray<readonly [pattern: RegExp, sentence: string]> = [
  [/(?:^|[\d,-])l(?:w|-\d+)?$/, "L (the last day) is not read; write the days, for example 28-31"],
  [/^\d+w$/, "W (the nearest weekday) is not read; write the days of the week, for example MON-FRI"],
  [/#/, "# (the nth weekday of a month) is not read; write days and days of the week in two triggers"],
  [/^@/, "shorthands are not read; write the fields, for example 0 0 0 * * * for @daily"]
]

const form = "Expected a cron expression of six fields, seconds first, or of five"

/**
 * Reads the expression, or returns why it is not one. It may be one whose time
 * never comes. `?` in place of a day or a day of the week means the same as `*`.
 */
export const parseCron = (expression: string, timeZone: string): Result.Result<Cron.Cron, string> => {
  const fields = expression.trim().split(/\s+/)
  for (const field of fields) {
    const found = refused.find(([pattern]) => pattern.test(field.toLowerCase()))
    if (found !== undefined) return Result.fail(`${form}: ${found[1]}`)
  }
  if (fields.length === 7) return Result.fail(`${form}: the field of the year is not read`)
  const read = fields.map((field, place) => field === "?" && isDay(fields.length - place) ? "*" : field)
  return Result.mapError(Cron.parse(read.join(" "), timeZone), ({ message }) => `${form} (${message})`)
}

/**
 * The next `count` times after `after`, Unix milliseconds; fewer if no more come. Fails
 * with the names of the field that does not fit, and what was expected.
 */
export const upcomingTimes = (
  { after, count, cron, timeZone }: {
    readonly cron: string
    /** An IANA name such as `Europe/Berlin`. */
    readonly timeZone: string
    readonly after: number
    readonly count: number
  }
): Result.Result<ReadonlyArray<number>, InvalidInput> => {
  if (!isTimeZone(timeZone)) return Result.fail(InvalidInput.of("timeZone", expectedTimeZone))
  const parsed = parseCron(cron, timeZone)
  if (Result.isFailure(parsed)) return Result.fail(InvalidInput.of("cron", parsed.failure))
  const times: Array<number> = []
  for (let last = nextTime(cron, timeZone, after); last !== null && times.length < count;) {
    times.push(last)
    last = nextTime(cron, timeZone, last)
  }
  return Result.succeed(times)
}

/** Whether a field holds days of the month or of the week, by its place from the end. */
const isDay = (fromEnd: number): boolean => fromEnd === 1 || fromEnd === 3

/**
 * Returns the next time after `after`, both Unix milliseconds; null: there is none. A
 * time that the clocks skip comes as much later as they skip; one that comes twice
 * counts once.
 */
export const nextTime = (expression: string, timeZone: string, after: number): number | null =>
  Result.match(parseCron(expression, timeZone), {
    onFailure: () => null,
    onSuccess: (cron) => {
      if (!hasDay(cron, expression)) return null
      try {
        // UTC skips nothing, and is the zone of most.
        if (timeZone === "UTC") return Cron.next(cron, after).getTime()
        const next = Cron.next(cron, Math.max(after, earliest(expression, timeZone, after))).getTime()
        return Math.min(next, ...skippedTimes(expression, timeZone, after, next))
      } catch {
        return null
      }
    }
  })

/**
 * Returns a time before which none comes, at most two days before the next: `Cron`
 * passes over years in UTC in a small part of the time that they take in other zones.
 */
const earliest = (expression: string, timeZone: string, after: number): number => {
  // The least of what may count: clocks may be set on the day before or after.
  const offset = Math.min(...[-1, 0, 1].map((days) => offsetAt(after + days * dayMillis, timeZone)))
  return Cron.next(inUtc(expression), after + offset).getTime() - dayMillis
}

/** The expression by the clocks of UTC. */
const inUtc = (expression: string): Cron.Cron => Result.getOrThrow(parseCron(expression, "UTC"))

/**
 * Returns the next times after `after` that come while skipped times do: `Cron` knows
 * the first of the skipped times alone. `next`: what `Cron` returns.
 */
const skippedTimes = (expression: string, timeZone: string, after: number, next: number): ReadonlyArray<number> => {
  const stretches = next - after < dayMillis
    ? [[after - dayMillis, next] as const]
    : [after, next].map((near) => [near - dayMillis, near] as const)
  return stretches.flatMap(([start, end]) => {
    const before = offsetAt(start, timeZone)
    const skipped = offsetAt(end, timeZone) - before
    if (skipped <= 0) return []
    const change = clockChange(timeZone, start, end)
    const from = Math.max(after, change - 1)
    const clocks = inUtc(expression)
    const nextBy = (offset: number) => Cron.next(clocks, from + offset).getTime() - offset
    return [nextBy(before), nextBy(before + skipped)].filter((time) => time < change + skipped)
  })
}

/** The days of each month, of February those of a leap year. */
const daysOfMonth = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/**
 * Whether there is such a day, unlike 30 February. To search for one that never
 * comes takes a quarter of a second. Days of the week are an alternative to those
 * of the month, unless their field begins with `*`.
 */
const hasDay = ({ days, months, weekdays }: Cron.Cron, expression: string): boolean =>
  days.size === 0 || months.size === 0 || (weekdays.size > 0 && /\s[^*\s]\S*\s*$/.test(expression)) ||
  [...months].some((month) => Math.min(...days) <= daysOfMonth[month - 1]!)
