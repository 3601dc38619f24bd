import { DeviceId, HistoryStore, IdempotencyStore, NodeBus, ProjectId, StoreHealth } from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { newEmptyDatabase } from "../../../vitest.storages.ts"
import { migrations } from "../src/Migrations.ts"
import { migrate } from "../src/Migrator.ts"

const claim = {
  projectId: ProjectId.make("elsewhere"),
  key: "key",
  fingerprint: "first",
  at: 1000,
  claimExpiredBefore: 0,
  answerExpiredBefore: 0
}

it.live("history, requests, notices and health need no other store on their database", () =>
  Effect.gen(function*() {
    const url = yield* newEmptyDatabase
    const stores = yield* Layer.mergeAll(
      StoragePg.layerHistoryStore,
      StoragePg.layerIdempotencyStore,
      StoragePg.layerNodeBus,
      StoragePg.layerStoreHealth
    ).pipe(
      Layer.provide(StoragePg.layerMigrations),
      Layer.provide(PgClient.layer({ url, multiplex: true })),
      Layer.build
    )
    yield* Effect.gen(function*() {
      const deviceId = DeviceId.make("elsewhere")
      const samples = [{ propertyId: "t", time: 1, value: 20 }]
      const history = yield* HistoryStore
      yield* history.append([{ deviceId, samples, events: [] }])
      assert.deepStrictEqual(
        yield* history.samples(deviceId, "t", { start: 0, end: 2, limit: 10, order: "asc" }),
        samples
      )
      assert.deepStrictEqual(yield* (yield* IdempotencyStore).claim(claim), { _tag: "Claimed" })
      yield* (yield* StoreHealth).check
      assert.isDefined(yield* NodeBus)
    }).pipe(Effect.provide(stores))
  }).pipe(Effect.scoped))

it.live("a database of an earlier version keeps its rows and gets the new schema", () =>
  Effect.gen(function*() {
    const url = yield* newEmptyDatabase
    const client = PgClient.layer({ url })
    const sql = yield* Effect.provide(PgClient.PgClient, yield* Layer.build(client))
    const earlier = Object.fromEntries(Object.entries(migrations).filter(([name]) => name < "0010"))
    yield* Effect.provide(migrate(earlier), yield* Layer.build(client))
    yield* sql`INSERT INTO project (id, name, created_at) VALUES ('here', 'Here', now())`
    yield* sql`INSERT INTO request (project_id, key, fingerprint, claimed_at) VALUES ('here', 'key', 'old', now())`
    yield* Layer.build(StoragePg.layerMigrations.pipe(Layer.provide(client)))
    yield* Effect.gen(function*() {
      const store = yield* IdempotencyStore
      assert.deepStrictEqual(yield* store.claim({ ...claim, projectId: ProjectId.make("here") }), {
        _tag: "InProgress",
        fingerprint: ""
      })
      assert.deepStrictEqual(yield* store.claim(claim), { _tag: "Claimed" })
    }).pipe(Effect.provide(StoragePg.layerIdempotencyStore), Effect.provideService(PgClient.PgClient, sql))
  }).pipe(Effect.scoped))
