import { DeviceId, History, HistoryStore } from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"

const histories = History.layerRetention(2).pipe(
  Layer.provideMerge(StorageMemory.layerHistoryStore),
  Layer.provide(StorageMemory.layerTables)
)

const deviceId = DeviceId.make("d")

const keepsTwoDays = Effect.gen(function*() {
  const store = yield* HistoryStore
  const values = Effect.map(
    store.samples(deviceId, "a", { start: 0, end: 8.64e15, limit: 10, order: "asc" }),
    (samples) => samples.map(({ value }) => value)
  )
  const samples = [9, 10].map((day) => ({ propertyId: "a", time: Date.UTC(2026, 0, day), value: day }))
  yield* store.append([{ deviceId, samples, events: [] }])
  yield* TestClock.adjust("12 hours")
  assert.deepStrictEqual(yield* values, [9, 10])
  yield* TestClock.adjust("1 day")
  assert.deepStrictEqual(yield* values, [10])
  yield* TestClock.adjust("1 day")
  assert.deepStrictEqual(yield* values, [])
})

it.effect("history is forgotten by when it was measured", () =>
  TestClock.setTime(Date.UTC(2026, 0, 10)).pipe(
    Effect.andThen(Effect.provide(keepsTwoDays, histories))
  ))
