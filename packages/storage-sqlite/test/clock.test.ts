/**
 * What a clock that was ahead has stored in a file, when it is opened with the right one.
 */
import { PresenceStore, sightingMillis } from "@device-cloud/core"
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
