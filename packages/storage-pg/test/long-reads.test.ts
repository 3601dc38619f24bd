import { DeviceId, HistoryStore, ProductStore, ProjectId } from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { EmbeddedPostgres, TestKeyRing } from "@device-cloud/testing"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { inject } from "vitest"

it.live("reads of many rows that take long do not hold up short statements", () =>
  Effect.gen(function*() {
    const url = yield* EmbeddedPostgres.createDatabase(Redacted.make(inject("postgresUrl")))
    yield* Effect.gen(function*() {
      const history = yield* HistoryStore
      const products = yield* ProductStore
      const other = yield* PgClient.PgClient
      const [isLocked, mayGo] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      // The history waits for this lock.
      const lock = yield* other`LOCK TABLE property_sample IN ACCESS EXCLUSIVE MODE`.pipe(
        Effect.andThen(Deferred.succeed(isLocked, undefined)),
        Effect.andThen(Deferred.await(mayGo)),
        other.withTransaction,
        Effect.forkChild
      )
      yield* Deferred.await(isLocked)
      const range = { start: 0, end: 8.64e15, limit: 10, order: "asc" } as const
      // More than all connections of short statements carry together.
      const reads = yield* Effect.forkChild(
        Effect.all(Array.from({ length: 500 }, () => history.samples(DeviceId.make("d"), "p", range)), {
          concurrency: "unbounded"
        })
      )
      const waiting = other<{ readonly count: number }>`
        SELECT count(*)::int AS count FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`
      yield* Effect.repeat(waiting, { until: ([row]) => row!.count > 0 })
      const page = yield* products.list(ProjectId.make("none"), { page: 1, pageSize: 10 })
      assert.strictEqual(page.total, 0)
      assert.isUndefined(reads.pollUnsafe())
      yield* Deferred.succeed(mayGo, undefined)
      yield* Fiber.join(lock)
      assert.strictEqual((yield* Fiber.join(reads)).length, 500)
    }).pipe(
      Effect.provide(
        Layer.merge(StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer)), PgClient.layer({ url }))
      )
    )
  }).pipe(Effect.scoped))
