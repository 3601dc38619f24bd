import { assert, describe, it } from "@effect/vitest"
import { everyDay, isOpen, isTimeOfDay, localTime, nextOpening, type Weekday } from "../src/kernel/TimeWindow.ts"

const weekdays: ReadonlyArray<Weekday> = ["mon", "tue", "wed", "thu", "fri"]

describe("windows of time", () => {
  const night = { start: "22:00", end: "06:00", days: weekdays }

  it.each<readonly [string, boolean]>([
    // Winter: an hour ahead of UTC. 20 November 2026 is a Friday.
    ["2026-11-20T20:59:59Z", false],
    ["2026-11-20T21:00:00Z", true],
    // Saturday morning belongs to the window of Friday.
    ["2026-11-21T04:59:59Z", true],
    ["2026-11-21T05:00:00Z", false],
    ["2026-11-21T22:00:00Z", false],
    // Monday morning belongs to the window of Sunday, which there is none of.
    ["2026-11-23T02:00:00Z", false],
    // Summer: two hours ahead.
    ["2026-07-10T20:00:00Z", true],
    ["2026-07-10T19:59:00Z", false]
  ])("22:00 to 06:00 on weekdays in Berlin, at %s: %s", (at, expected) => {
    assert.strictEqual(isOpen(night, localTime(Date.parse(at), "Europe/Berlin")), expected)
  })

  it("a window that ends when it begins lasts a day", () => {
    const day = { start: "12:00", end: "12:00", days: ["mon"] as const }
    const open = (at: string) => isOpen(day, localTime(Date.parse(at), "UTC"))
    assert.deepStrictEqual(
      ["2026-11-23T11:59:00Z", "2026-11-23T12:00:00Z", "2026-11-24T11:59:00Z", "2026-11-24T12:00:00Z"].map(open),
      [false, true, true, false]
    )
  })

  it("a window within a day", () => {
    const noon = { start: "11:30", end: "13:00", days: everyDay }
    const open = (at: string) => isOpen(noon, localTime(Date.parse(at), "Asia/Kolkata"))
    assert.deepStrictEqual(
      ["2026-11-22T05:59:00Z", "2026-11-22T06:00:00Z", "2026-11-22T07:30:00Z"].map(open),
      [false, true, false]
    )
  })

  it.each<readonly [string, string]>([
    // A Friday; the clocks are an hour ahead.
    ["2026-11-20T20:00:00Z", "2026-11-20T21:00:00.000Z"],
    ["2026-11-20T23:00:00Z", "2026-11-20T23:00:00.000Z"],
    ["2026-11-21T05:00:00Z", "2026-11-23T21:00:00.000Z"],
    // Summer time begins on the Sunday between.
    ["2026-03-28T12:00:00Z", "2026-03-30T20:00:00.000Z"]
  ])("after %s opens at %s", (at, expected) => {
    assert.strictEqual(new Date(nextOpening(night, "Europe/Berlin", Date.parse(at))).toISOString(), expected)
  })

  it("an opening that summer time skips is left out", () => {
    const short = { start: "02:10", end: "02:50", days: everyDay }
    const opening = nextOpening(short, "Europe/Berlin", Date.parse("2026-03-28T12:00:00Z"))
    assert.strictEqual(new Date(opening).toISOString(), "2026-03-30T00:10:00.000Z")
  })

  it.each<readonly [string, string, string, string, string]>([
    // Summer time skips the beginning: the window opens when the clocks are set.
    ["Europe/Berlin", "02:30", "04:00", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00.000Z"],
    ["America/New_York", "02:45", "03:45", "2026-03-07T12:00:00Z", "2026-03-08T07:00:00.000Z"],
    ["Africa/Cairo", "00:40", "01:10", "2026-04-23T12:00:00Z", "2026-04-23T22:00:00.000Z"],
    // It ends: the clocks show 02:00 to 03:00 twice.
    ["Europe/Berlin", "02:30", "07:00", "2026-10-25T01:15:00Z", "2026-10-25T01:30:00.000Z"],
    ["Europe/Berlin", "00:30", "02:10", "2026-10-25T00:20:00Z", "2026-10-25T01:00:00.000Z"]
  ])("in %s, %s to %s opens after %s at %s", (timeZone, start, end, at, expected) => {
    const opening = nextOpening({ start, end, days: ["sun", "fri"] }, timeZone, Date.parse(at))
    assert.strictEqual(new Date(opening).toISOString(), expected)
  })

  it("reads times of the day", () => {
    assert.deepStrictEqual(["00:00", "23:59", "09:05"].filter(isTimeOfDay).length, 3)
    assert.deepStrictEqual(["24:00", "9:05", "09:60", "", "09:05:00", " 09:05"].filter(isTimeOfDay), [])
  })
})
