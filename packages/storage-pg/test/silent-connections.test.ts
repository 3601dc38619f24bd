/**
 * A database whose machine goes without a word, while another one answers at its address.
 */
import { DeviceId, HistoryStore, NodeBus, ProductKey, ProductStore, StoreHealth } from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, TestKeyRing } from "@device-cloud/testing"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Redacted } from "effect"
import { afterEach, beforeEach, vi } from "vitest"
import { blockedStatements, newDatabase, newEmptyDatabase } from "../../../vitest.storages.ts"
import { wayTo } from "../../../vitest.ways.ts"

// Connections are looked at by this timer.
beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }))
afterEach(() => void vi.useRealTimers())

const storage = (url: string) =>
  Layer.build(StoragePg.layer({ url: Redacted.make(url) }).pipe(Layer.provide(TestKeyRing.layer)))

const pass = (seconds: number) => Effect.promise(() => vi.advanceTimersByTimeAsync(seconds * 1000))

const clientOf = (url: Redacted.Redacted) =>
  Effect.map(Layer.build(PgClient.layer({ url })), (context) => Context.get(context, PgClient.PgClient))

/** Runs an effect while a transaction of somebody else has done `locking`; that ends when the effect has long waited for it. */
const during = Effect.fnUntraced(
  function*<A, E, R>(url: Redacted.Redacted, locking: string, effect: Effect.Effect<A, E, R>) {
    const sql = yield* clientOf(url)
    const running = yield* sql.withTransaction(Effect.gen(function*() {
      yield* sql.unsafe(locking)
      const running = yield* Effect.forkScoped(effect)
      yield* eventually(blockedStatements(sql), { until: (count) => count > 0 })
      yield* pass(60)
      assert.isUndefined(running.pollUnsafe())
      return running
    }))
    return yield* Fiber.join(running)
  }
)

it.live("statements that get no answer fail, and the next ones go to the database that answers then", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const sql = yield* clientOf(url)
    const way = yield* wayTo(Redacted.value(url))
    const context = yield* storage(way.url)
    yield* Effect.gen(function*() {
      const { check } = yield* StoreHealth
      const products = yield* ProductStore
      const bus = yield* NodeBus
      let missed = 0
      yield* bus.listen((notice) => void (missed += notice === "missed" ? 1 : 0))
      yield* eventually(
        sql`SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`,
        { until: ({ length }) => length > 0 }
      )
      yield* check

      yield* way.silence
      const transaction = yield* Effect.forkChild(Effect.flip(check))
      const statement = yield* Effect.forkChild(
        Effect.flip(Effect.asVoid(products.find(ProductKey.make("v4iSM4IRtGz"))))
      )
      const before = missed
      yield* pass(25)
      assert.deepStrictEqual([transaction.pollUnsafe(), statement.pollUnsafe()], [undefined, undefined])
      yield* pass(15)
      for (const waiting of [transaction, statement]) {
        const error = yield* Fiber.join(waiting)
        assert.deepInclude(error, { _tag: "StoreError", retryable: true })
      }
      yield* check
      yield* eventually(Effect.sync(() => missed), { until: (times) => times > before })
    }).pipe(Effect.provide(context))
  }).pipe(Effect.scoped))

it.live("a read of many rows may take longer", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const { samples } = yield* Effect.provide(HistoryStore, yield* storage(Redacted.value(url)))
    const read = samples(DeviceId.make("nobody"), "power", { start: 0, end: 1, limit: 1, order: "asc" })
    assert.deepStrictEqual(yield* during(url, "LOCK TABLE history_segment IN ACCESS EXCLUSIVE MODE", read), [])
  }).pipe(Effect.scoped))

it.live("a migration takes as long as it takes", () =>
  Effect.gen(function*() {
    const url = yield* newEmptyDatabase
    const context = yield* during(url, "SELECT pg_advisory_xact_lock(0x64636c64)", storage(Redacted.value(url)))
    yield* Effect.flatMap(StoreHealth, ({ check }) => check).pipe(Effect.provide(context))
  }).pipe(Effect.scoped))
