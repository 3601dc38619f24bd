/**
 * What a clock that was ahead has stored in a file, when it is opened with the right one.
 */
import { feedStart, FeedStore, PresenceStore, sightingMillis } from "@device-cloud/core"
import { insertDevice } from "@device-cloud/testing/contracts"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { sqlite } from "../../../vitest.storages.ts"

const limits = { silence: 500, gap: 5000 }
/** Unix milliseconds. */
const epoch = Date.UTC(2026, 0)
const hour = 3_600_000

/** Lets a node speak until it may judge others. */
const beatSteadily = (nodeId: string) =>
  Effect.gen(function*() {
    const presence = yield* PresenceStore
    for (let i = 0; i < 2; i++) {
      yield* presence.heartbeat(nodeId, limits)
      yield* TestClock.adjust(limits.silence)
    }
    yield* presence.heartbeat(nodeId, limits)
  })

it.effect("a device on HTTP that was seen by a clock that was ahead goes offline after five minutes", () =>
  Effect.gen(function*() {
    const presence = yield* PresenceStore
    const { device: { deviceId } } = yield* insertDevice
    const lapse = { _tag: "SightingEnds", judge: { nodeId: "second", limits } } as const
    yield* TestClock.setTime(epoch + hour)
    yield* presence.heartbeat("first", limits)
    yield* presence.markSeen([{ deviceId, ip: "192.0.2.8", at: epoch + hour, lasts: sightingMillis }])
    yield* TestClock.setTime(epoch)
    yield* beatSteadily("second")
    assert.deepStrictEqual(yield* presence.lapsed(lapse, 10), [])
    yield* TestClock.setTime(epoch + sightingMillis)
    yield* beatSteadily("second")
    assert.deepStrictEqual((yield* presence.lapsed(lapse, 10)).map((device) => device.deviceId), [deviceId])
  }).pipe(Effect.provide(sqlite), Effect.scoped))

it.effect("events that are stored while the clock is thousands of years ahead can be read", () =>
  Effect.gen(function*() {
    yield* TestClock.setTime(Date.UTC(9999, 11, 31))
    yield* Effect.gen(function*() {
      const feed = yield* FeedStore
      const { device } = yield* insertDevice
      const isOnline = { _tag: "DeviceStatusChanged", device, at: epoch, status: "online" } as const
      yield* feed.append([{ ...isOnline, version: 1 }, { ...isOnline, version: 2 }])
      const first = yield* feed.read({ projectId: undefined, after: feedStart, limit: 1 })
      const second = yield* feed.read({ projectId: undefined, after: first.next, limit: 1 })
      const versions = [...first.entries, ...second.entries].map(({ event }) => "version" in event && event.version)
      assert.deepStrictEqual(versions, [1, 2])
    }).pipe(Effect.provide(sqlite))
  }).pipe(Effect.scoped))
