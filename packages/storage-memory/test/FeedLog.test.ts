/**
 * The feed in memory: parts, and reports in columns.
 */
import { defaultProjectId, DeviceId, DeviceName, type DomainEvent, ProductKey } from "@device-cloud/core"
import { assert, describe, it } from "@effect/vitest"
import { FeedLog, placeOfNumber } from "../src/FeedLog.ts"

const device = {
  deviceId: DeviceId.make("device"),
  productKey: ProductKey.make("product"),
  deviceName: DeviceName.make("name"),
  projectId: defaultProjectId
}

/** Reports of each form, with another event between them. */
const eventAt = (at: number): DomainEvent => {
  const report = { _tag: "PropertiesReported", device, at } as const
  switch (at % 5) {
    case 0:
      return { _tag: "EventReported", device, at, eventId: "e", time: at, value: { at } }
    case 1:
      return { ...report, properties: { a: { value: at / 7, time: at - 1 } } }
    case 2:
      return { ...report, properties: { a: { value: null, time: at }, b: { value: "text", time: at + 1 } } }
    case 3:
      return { ...report, properties: { b: { value: [at], time: 0 }, a: { value: 0, time: at } } }
    default: {
      const earlier = [{ propertyId: "a", time: 0, value: 1 }]
      return { ...report, properties: { a: { value: true, time: at } }, earlier }
    }
  }
}

const events = (count: number): ReadonlyArray<DomainEvent> => Array.from({ length: count }, (_, at) => eventAt(at))

describe("FeedLog", () => {
  it("gives every event as it was, in order, from any place", () => {
    const log = new FeedLog(0)
    log.append(events(5000), 1)
    assert.deepStrictEqual(log.after(0, 10_000).map(({ event }) => event), events(5000))
    assert.deepStrictEqual(
      log.after(1500, 3).map(({ id, event }) => [id, event.at]),
      [1501, 1502, 1503].map((number) => [placeOfNumber(number), number - 1])
    )
    assert.deepStrictEqual(log.after(5000, 10), [])
    assert.deepStrictEqual(
      log.before(2049, 2, ({ _tag }) => _tag === "EventReported").map(({ event }) => event),
      [eventAt(2045), eventAt(2040)]
    )
  })

  it("takes a report with more values than a part has room for", () => {
    const log = new FeedLog(0)
    const properties = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`p${i}`, { value: i, time: i }]))
    const large: DomainEvent = { _tag: "PropertiesReported", device, at: 1, properties }
    log.append([large, eventAt(1), large], 1)
    assert.deepStrictEqual(log.after(0, 3).map(({ event }) => event), [large, eventAt(1), large])
  })

  it("keeps the latest 50,000 events, also when parts are used again", () => {
    const log = new FeedLog(0)
    for (let round = 0; round < 12; round++) log.append(events(10_000), round)
    assert.strictEqual(log.last, 120_000)
    assert.isAtLeast(log.last - log.forgotten, 50_000)
    assert.isBelow(log.last - log.forgotten, 100_000)
    const kept = log.after(0, 200_000)
    assert.strictEqual(kept[0]!.id, placeOfNumber(log.forgotten + 1))
    assert.deepStrictEqual(kept.slice(-10_000).map(({ event }) => event), events(10_000))
  })

  it("keeps fewer events if they are large", () => {
    const earlier = Array.from({ length: 1000 }, (_, time) => ({ propertyId: "a", time, value: time }))
    const properties = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`p${i}`, { value: i, time: i }]))
    const text = "x".repeat(200_000)
    const report = { _tag: "PropertiesReported", device, at: 1 } as const
    const large: ReadonlyArray<readonly [event: DomainEvent, most: number]> = [
      [{ ...report, properties, earlier }, 600],
      [{ ...report, properties }, 12_000],
      [{ ...report, properties: { a: { value: text, time: 1 } } }, 1500],
      [{ _tag: "EventReported", device, at: 1, eventId: "e", time: 1, value: { text } }, 1500]
    ]
    for (const [event, most] of large) {
      const log = new FeedLog(0)
      for (let i = 0; i < most + 100; i++) log.append([event], 1)
      assert.isBelow(log.last - log.forgotten, most)
      assert.isAtLeast(log.last - log.forgotten, 500)
      assert.deepStrictEqual(log.after(log.last - 1, 2).map((entry) => entry.event), [event])
    }
  })

  it("forgets what was recorded before a time", () => {
    const log = new FeedLog(0)
    for (const time of [10, 20, 30]) log.append(events(1500), time)
    log.forgetBefore(20)
    assert.deepStrictEqual([log.forgotten, log.recordedBefore(30), log.recordedBefore(31)], [1500, 3000, 4500])
    assert.deepStrictEqual(log.after(0, 1)[0]!.event, eventAt(0))
    assert.strictEqual(log.before(1502, 10, () => true).length, 1)
  })
})
