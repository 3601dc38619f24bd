import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { isTimeZone } from "../src/kernel/TimeZone.ts"
import { nextTime, parseCron } from "../src/scene/definition/CronExpression.ts"

/** Sunday, 22 November 2026. */
const sunday = Date.UTC(2026, 10, 22)

const next = (expression: string) => {
  const time = nextTime(expression, "UTC", sunday)
  return time === null ? null : new Date(time).toISOString()
}

describe("a cron expression", () => {
  it.each([
    ["Europe/Berlin", "2026-11-22T06:30:00.000Z"],
    ["America/New_York", "2026-11-22T12:30:00.000Z"],
    ["Asia/Kolkata", "2026-11-22T02:00:00.000Z"]
  ])("has the time of its zone: %s", (zone, expected) => {
    assert.strictEqual(new Date(nextTime("0 30 7 * * *", zone, sunday)!).toISOString(), expected)
  })

  it("follows summer time", () => {
    const times = [Date.UTC(2027, 2, 27, 12), Date.UTC(2027, 2, 28, 12)].map((after) =>
      new Date(nextTime("0 30 7 * * *", "Europe/Berlin", after)!).toISOString()
    )
    assert.deepStrictEqual(times, ["2027-03-28T05:30:00.000Z", "2027-03-29T05:30:00.000Z"])
    // In the hour that is left out, and in the one that comes twice.
    assert.isNotNull(nextTime("0 30 2 28 3 *", "Europe/Berlin", Date.UTC(2027, 2, 27)))
    assert.strictEqual(
      new Date(nextTime("0 30 2 * * *", "Europe/Berlin", Date.UTC(2027, 9, 30, 22))!).toISOString(),
      "2027-10-31T00:30:00.000Z"
    )
  })

  it.each([
    ["0 0/20 2 * * *", "Europe/Berlin", "2027-03-28T01:00Z", ["01:00", "01:20", "01:40"]],
    ["0 30 2-3 * * *", "Europe/Berlin", "2027-03-28T01:00Z", ["01:30"]],
    ["30 0/30 * * * *", "America/New_York", "2027-03-14T07:00Z", ["07:00", "07:30", "08:00"]],
    // Half an hour is skipped, so one that is skipped comes after one that is not.
    ["0 15,30 2 * * *", "Australia/Lord_Howe", "2026-10-03T15:30Z", ["15:30", "15:45"]]
  ])("comes at each time that the clocks skip: %s in %s", (expression, zone, skip, expected) => {
    const times: Array<string> = []
    const end = Date.parse(skip) + 65 * 60_000
    for (
      let time = nextTime(expression, zone, Date.parse(skip) - 1)!;
      time < end;
      time = nextTime(expression, zone, time)!
    ) {
      times.push(new Date(time).toISOString().slice(11, 16))
    }
    assert.deepStrictEqual(times, expected)
  })

  it("comes in winter by the clocks of winter, whenever one asks", () => {
    for (const hour of [0, 1, 2, 3, 30]) {
      const time = nextTime("0 30 2 1 11 *", "Europe/Berlin", Date.UTC(2027, 2, 28, hour))
      assert.strictEqual(new Date(time!).toISOString(), "2027-11-01T01:30:00.000Z")
    }
  })

  it.each(["Mars/Olympus", "+02:00", "", "Berlin", "Europe/Berlin "])("has no such time zone: %s", (name) => {
    assert.isFalse(isTimeZone(name))
  })

  it.each([
    ["0 0 12 ? * MON", "2026-11-23T12:00:00.000Z"],
    ["0 0 12 ? * mon-fri", "2026-11-23T12:00:00.000Z"],
    ["0 0 12 1 * ?", "2026-12-01T12:00:00.000Z"],
    ["0 12 ? JAN SAT", "2027-01-02T12:00:00.000Z"],
    ["0 0/15 * * * ?", "2026-11-22T00:15:00.000Z"]
  ])("is read as Quartz and Spring write it: %s", (expression, expected) => {
    assert.strictEqual(next(expression), expected)
  })

  it.each([
    ["0 0 0 30 2 ?", null],
    ["0 0 0 31 FEB,APR,JUN,SEP,NOV *", null],
    ["0 0 0 30 2 */2", null],
    ["0 0 0 30-31 2,4 *", "2027-04-30T00:00:00.000Z"],
    ["0 0 0 29 2 *", "2028-02-29T00:00:00.000Z"],
    // Days of the month or of the week.
    ["0 0 0 30 2 MON", "2027-02-01T00:00:00.000Z"]
  ])("comes on days that there are: %s", (expression, expected) => {
    assert.strictEqual(next(expression), expected)
  })

  it("takes no time to find out that a day never comes", () => {
    // Each search through the days of many years took a quarter of a second.
    for (let hour = 0; hour < 1000; hour++) {
      assert.isNull(nextTime("0 0 0 30 2 *", "Europe/Berlin", sunday + hour * 3_600_000))
    }
  })

  it("takes no time to find a day that comes decades later", () => {
    // 29 February, if it is a Sunday. Each search took a fifth of a second.
    for (let minute = 0; minute < 900; minute++) {
      const found = nextTime("0 0 0 29 2 */7", "Europe/Berlin", Date.UTC(2032, 1, 29, 0, minute))
      assert.strictEqual(found, Date.parse("2060-02-29T00:00:00+01:00"))
    }
  })

  it.each([
    ["0 0 12 L * ?", "write the days, for example 28-31"],
    ["0 0 12 LW * ?", "write the days, for example 28-31"],
    ["0 0 12 L-3 * ?", "write the days, for example 28-31"],
    ["0 0 12 ? * 6L", "write the days, for example 28-31"],
    ["0 0 12 15W * ?", "write the days of the week, for example MON-FRI"],
    ["0 0 12 ? * 6#3", "in two triggers"],
    ["0 0 12 ? * FRI#1", "in two triggers"],
    ["0 0 12 * * ? 2027", "the field of the year is not read"],
    ["@daily", "for example 0 0 0 * * *"],
    ["? 0 12 * * *", "Expected a cron expression of six fields"]
  ])("is refused with what to write: %s", (expression, sentence) => {
    const parsed = parseCron(expression, "UTC")
    assert.isTrue(Result.isFailure(parsed))
    assert.include(Result.isFailure(parsed) ? parsed.failure : "", sentence)
  })
})
