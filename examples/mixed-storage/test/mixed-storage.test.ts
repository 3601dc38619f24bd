import {
  defaultProjectId,
  DeviceCloud,
  type DeviceId,
  Devices,
  History,
  type HistoryRange,
  HistoryStore,
  Idempotency,
  Shadows,
  StoreError
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import { EmbeddedPostgres } from "@device-cloud/postgres-embedded"
import * as StorageMemory from "@device-cloud/storage-memory"
import { eventually, Fixtures, SimulatedDevice, TestKeyRing } from "@device-cloud/testing"
import { IdempotencyStoreContract } from "@device-cloud/testing/contracts"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted, Ref } from "effect"
import { inject } from "vitest"
import * as Storage from "../src/Storage.ts"

const all: HistoryRange = { start: 0, end: Number.MAX_SAFE_INTEGER, limit: 10, order: "asc" }

const history = StorageMemory.layerHistoryStore.pipe(Layer.provide(StorageMemory.layerTables))

const database = Effect.suspend(() => EmbeddedPostgres.createDatabase(Redacted.make(inject("postgresUrl"))))

/** A cloud on the mixed storage, with its history store and a client of its database. */
const mixed = (historyStore: Layer.Layer<HistoryStore> = history) =>
  Layer.unwrap(
    Effect.map(database, (url) =>
      DeviceCloud.layer.pipe(
        Layer.provideMerge(Layer.provide(Storage.layer({ url, history: historyStore }), TestKeyRing.layer)),
        Layer.provideMerge(PlatformNode.layer),
        Layer.provideMerge(PgClient.layer({ url }))
      ))
  )

const connect = Effect.gen(function*() {
  return yield* SimulatedDevice.connect(yield* Fixtures.createDevice())
})

const reportedPower = (deviceId: DeviceId) =>
  Effect.flatMap(
    Shadows,
    (shadows) => Effect.map(shadows.get(defaultProjectId, deviceId), ({ shadow }) => shadow.reported["power"]?.value)
  )

const powerHistory = (deviceId: DeviceId) =>
  Effect.flatMap(
    History,
    (history) =>
      Effect.map(history.properties(defaultProjectId, deviceId, "power", all), (samples) =>
        samples.map(({ value }) => value))
  )

const rows = (table: "history_segment" | "request" | "device" | "shadow") =>
  Effect.flatMap(PgClient.PgClient, (sql) =>
    Effect.map(
      sql<{ readonly count: number }>`SELECT count(*)::int AS count FROM ${sql(table)}`,
      ([row]) => row!.count
    ))

/** A history store that is out of reach until `isOpen`. It counts the calls of `append`. */
const gated = (isOpen: Ref.Ref<boolean>, calls: Ref.Ref<number>) =>
  Layer.effect(
    HistoryStore,
    Effect.map(HistoryStore, (store) => ({
      ...store,
      append: Effect.fnUntraced(function*(additions) {
        yield* Ref.update(calls, (count) => count + 1)
        if (!(yield* Ref.get(isOpen))) {
          return yield* new StoreError({ operation: "append", retryable: true, cause: "closed" })
        }
        return yield* store.append(additions)
      })
    }))
  ).pipe(Layer.provide(history))

it.live("devices are in PostgreSQL, and their history is in the other store", () =>
  Effect.gen(function*() {
    const { device: { deviceId }, postProperties, send } = yield* connect
    for (const power of [40, 42]) assert.strictEqual((yield* postProperties({ power })).code, 200)
    assert.strictEqual((yield* send("thing.event.overload.post", { limit: 40 })).code, 200)
    assert.strictEqual(yield* reportedPower(deviceId), 42)
    assert.deepStrictEqual(yield* powerHistory(deviceId), [40, 42])
    const events = yield* (yield* History).events(defaultProjectId, deviceId, "overload", all)
    assert.deepStrictEqual(events.map(({ value }) => value), [{ limit: 40 }])
    assert.deepStrictEqual([yield* rows("device"), yield* rows("shadow")], [1, 1])
    assert.strictEqual(yield* rows("history_segment"), 0)
  }).pipe(Effect.scoped, Effect.provide(mixed())))

it.live("a report is acknowledged when both stores have it, and committed once", () =>
  Effect.gen(function*() {
    const isOpen = yield* Ref.make(false)
    const calls = yield* Ref.make(0)
    yield* Effect.gen(function*() {
      const { device: { deviceId }, postProperties } = yield* connect
      const report = yield* Effect.forkChild(postProperties({ power: 40 }))
      // PostgreSQL has it, and the other store refuses it for the second time.
      yield* eventually(Ref.get(calls), { until: (count) => count >= 2 })
      assert.strictEqual(yield* reportedPower(deviceId), 40)
      assert.deepStrictEqual(yield* powerHistory(deviceId), [])
      assert.isUndefined(report.pollUnsafe())

      yield* Ref.set(isOpen, true)
      assert.strictEqual((yield* Fiber.join(report)).code, 200)
      assert.deepStrictEqual(yield* powerHistory(deviceId), [40])
      const { shadow } = yield* (yield* Shadows).get(defaultProjectId, deviceId)
      assert.strictEqual(shadow.version, 1)
    }).pipe(Effect.scoped, Effect.provide(mixed(gated(isOpen, calls))))
  }))

it.live("the history of a device that is deleted goes with it", () =>
  Effect.gen(function*() {
    const { device: { deviceId }, postProperties } = yield* connect
    const other = yield* connect
    for (const { postProperties: post } of [{ postProperties }, other]) yield* post({ power: 40 })
    const store = yield* HistoryStore
    assert.lengthOf(yield* store.samples(deviceId, "power", all), 1)
    yield* (yield* Devices).remove(defaultProjectId, deviceId)
    assert.deepStrictEqual(yield* store.samples(deviceId, "power", all), [])
    assert.lengthOf(yield* store.samples(other.device.deviceId, "power", all), 1)
  }).pipe(Effect.scoped, Effect.provide(mixed())))

it.live("requests with an idempotency key are in the store of the application", () =>
  Effect.gen(function*() {
    const runs = yield* Ref.make(0)
    const request = Effect.flatMap(Idempotency, (idempotency) =>
      idempotency.once(
        { projectId: defaultProjectId, key: "key", accessKey: Redacted.make("access key"), text: "request" },
        Effect.as(Ref.update(runs, (count) => count + 1), { status: 200, body: "{}" })
      ))
    assert.deepStrictEqual(yield* request, { status: 200, body: "{}" })
    assert.deepStrictEqual(yield* request, { status: 200, body: "{}" })
    assert.strictEqual(yield* Ref.get(runs), 1)
    assert.strictEqual(yield* rows("request"), 0)
  }).pipe(Effect.provide(mixed())))

IdempotencyStoreContract.suite(
  "of the application",
  Layer.unwrap(Effect.map(database, (url) => Layer.provide(Storage.layer({ url, history }), TestKeyRing.layer)))
)
