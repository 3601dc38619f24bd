import {
  defaultProjectId,
  type Device,
  DeviceCloud,
  Devices,
  DeviceStore,
  type DomainEvent,
  feedStart,
  FeedStore,
  parsePlace,
  placeOf,
  StoreError
} from "@device-cloud/core"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, Fixtures, TestKeyRing } from "@device-cloud/testing"
import { insertDevice } from "@device-cloud/testing/contracts"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Option, Redacted } from "effect"
import { newDatabase } from "../../../vitest.storages.ts"

const hour = 3_600_000
const at = Date.UTC(2026, 0, 1)

const online = (device: Device, version: number, atHour = 0): DomainEvent => ({
  _tag: "DeviceStatusChanged",
  device,
  at: at + atHour * hour,
  status: "online",
  version
})

/** A storage on the database, as a process of its own would have it. */
const storage = (url: Redacted.Redacted) => Layer.fresh(StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer)))

const database = Effect.gen(function*() {
  const url = yield* newDatabase
  const sql = Context.get(yield* Layer.build(PgClient.layer({ url })), PgClient.PgClient)
  return { url, sql }
})

const versionsAfter = Effect.fnUntraced(function*(place: string) {
  const page = yield* (yield* FeedStore).read({ projectId: undefined, after: place, limit: 1000 })
  return page.entries.map(({ event }) => event._tag === "DeviceStatusChanged" ? event.version : Number.NaN)
})

it.live("an event is not visible while a transaction runs that began before, and is afterwards", () =>
  Effect.gen(function*() {
    const { url } = yield* database
    yield* Effect.gen(function*() {
      const store = yield* FeedStore
      const { device } = yield* insertDevice
      const [begun, ends] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const slow = yield* Effect.forkChild(store.commit(
        store.append([online(device, 1)]).pipe(
          Effect.andThen(Deferred.succeed(begun, undefined)),
          Effect.andThen(Deferred.await(ends))
        ),
        () => []
      ))
      yield* Deferred.await(begun)
      yield* store.append([online(device, 2)])
      assert.deepStrictEqual(yield* versionsAfter(feedStart), [])
      yield* Deferred.succeed(ends, undefined)
      yield* Fiber.join(slow)
      assert.deepStrictEqual(yield* versionsAfter(feedStart), [1, 2])
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("writers go on while an old part goes, also while it waits for one of them", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    yield* Effect.gen(function*() {
      const store = yield* FeedStore
      const { device } = yield* insertDevice
      const { device: gone } = yield* insertDevice
      yield* store.append([online(device, 1), online(gone, 1)])
      yield* (yield* DeviceStore).remove(gone.projectId, gone.deviceId)
      yield* store.prune({ keepMillis: hour, maxBytes: 1, isHistoryApart: true })
      assert.deepStrictEqual(yield* versionsAfter(feedStart), [])
      yield* store.append([online(device, 2)])
      const [begun, ends] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      // It has written to the part that is to go.
      const slow = yield* Effect.forkChild(store.commit(
        store.append([online(device, 3)]).pipe(
          Effect.andThen(Deferred.succeed(begun, undefined)),
          Effect.andThen(Deferred.await(ends))
        ),
        () => []
      ))
      yield* Deferred.await(begun)
      const pruning = yield* Effect.forkChild(store.prune({ keepMillis: hour, maxBytes: 1, isHistoryApart: true }))
      yield* eventually(
        sql`SELECT FROM pg_inherits WHERE inhparent = 'feed'::regclass AND inhdetachpending`,
        { until: (rows) => rows.length === 1 }
      )
      yield* store.append([online(device, 4)])
      assert.isUndefined(pruning.pollUnsafe())
      yield* Deferred.succeed(ends, undefined)
      yield* Fiber.join(slow)
      yield* Fiber.join(pruning)
      assert.deepStrictEqual(yield* versionsAfter(feedStart), [4])
      const tables = yield* sql<{ readonly name: string }>`
        SELECT relname AS name FROM pg_class WHERE relname ~ '^feed_[0-9]+$'`
      assert.deepStrictEqual(tables.map(({ name }) => name), ["feed_3"])
      // Names go when no part can refer to them.
      assert.lengthOf(yield* sql`SELECT FROM former_device`, 1)
      yield* sql`UPDATE former_device SET deleted_at = now() - interval '2 hours'`
      yield* store.prune({ keepMillis: hour, maxBytes: 1e9, isHistoryApart: true })
      assert.lengthOf(yield* sql`SELECT FROM former_device`, 0)
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("a part that a clock of the database opened in the future grows no larger than others", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    yield* Effect.gen(function*() {
      const store = yield* FeedStore
      const { device } = yield* insertDevice
      const { device: gone } = yield* insertDevice
      yield* store.append([online(device, 1), online(gone, 2)])
      yield* sql`UPDATE feed_slot SET opened_at = now() + interval '40 days'`
      yield* (yield* DeviceStore).remove(gone.projectId, gone.deviceId)
      yield* store.prune({ keepMillis: hour, maxBytes: 1e9, isHistoryApart: true })
      // The feed still names the device that is gone.
      assert.deepStrictEqual(yield* versionsAfter(feedStart), [1, 2])
      yield* store.prune({ keepMillis: hour, maxBytes: 1, isHistoryApart: true })
      assert.deepStrictEqual(yield* versionsAfter(feedStart), [])
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("a part that a stopped process has half removed goes with the next turn", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    yield* Effect.gen(function*() {
      const store = yield* FeedStore
      const { device } = yield* insertDevice
      yield* store.append([online(device, 1)])
      yield* sql`INSERT INTO feed_slot (slot, opened_at) VALUES (0, '2020-01-01')`
      yield* sql`CREATE TABLE feed_0 (LIKE feed)`
      yield* sql`UPDATE feed_slot SET opened_at = now() - interval '2 hours' WHERE slot = 1`
      yield* store.prune({ keepMillis: hour, maxBytes: 1e9, isHistoryApart: true })
      assert.lengthOf(yield* sql`SELECT FROM feed_slot WHERE slot = 0`, 0)
      assert.lengthOf(yield* sql`SELECT FROM pg_class WHERE relname = 'feed_0'`, 0)
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("in another cluster, new events come after those that were restored, and places stay good", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    const { device, place } = yield* Effect.gen(function*() {
      const { device } = yield* insertDevice
      yield* (yield* FeedStore).append([online(device, 1), online(device, 2)])
      return { device, place: yield* (yield* FeedStore).end }
    }).pipe(Effect.provide(storage(url)))
    // As if the cluster before had come to higher numbers.
    yield* sql`UPDATE feed SET xid = xid + 1000000`
    const restored = Option.getOrThrow(
      Option.map(parsePlace(place), (numbers) => placeOf({ ...numbers, transaction: numbers.transaction + 1_000_000 }))
    )
    yield* Effect.gen(function*() {
      const store = yield* FeedStore
      yield* store.append([online(device, 3)])
      assert.deepStrictEqual(yield* versionsAfter(feedStart), [1, 2, 3])
      assert.deepStrictEqual(yield* versionsAfter(restored), [3])
    }).pipe(Effect.provide(storage(url)))
    // The next start changes nothing.
    yield* Effect.gen(function*() {
      yield* (yield* FeedStore).append([online(device, 4)])
      assert.deepStrictEqual(yield* versionsAfter(restored), [3, 4])
    }).pipe(Effect.provide(storage(url)))
    assert.lengthOf(yield* sql`SELECT FROM feed_slot`, 2)
  }).pipe(Effect.scoped))

it.live("in another cluster with higher numbers, new events come after places from after the dump, too", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    const { device, place } = yield* Effect.gen(function*() {
      const { device } = yield* insertDevice
      yield* (yield* FeedStore).append([online(device, 1)])
      return { device, place: yield* (yield* FeedStore).end }
    }).pipe(Effect.provide(storage(url)))
    // As if the cluster before had gone on after the dump.
    yield* sql`UPDATE feed_slot SET cluster = 'another'`
    const later = Option.getOrThrow(
      Option.map(parsePlace(place), (numbers) => placeOf({ ...numbers, transaction: numbers.transaction + 1_000_000 }))
    )
    for (const version of [2, 3]) {
      yield* Effect.gen(function*() {
        yield* (yield* FeedStore).append([online(device, version)])
        assert.deepStrictEqual(yield* versionsAfter(later), [2, 3].slice(0, version - 1))
      }).pipe(Effect.provide(storage(url)))
    }
    assert.lengthOf(yield* sql`SELECT FROM feed_slot`, 2)
  }).pipe(Effect.scoped))

it.live("a place that the feed has not reached is of another feed", () =>
  Effect.gen(function*() {
    const { url } = yield* database
    yield* Effect.gen(function*() {
      const store = yield* FeedStore
      const { device } = yield* insertDevice
      yield* store.append([online(device, 1)])
      const page = yield* store.read({
        projectId: device.projectId,
        after: placeOf({ transaction: 2 ** 50, sequence: 1, part: 1 }),
        limit: 1
      })
      assert.isTrue(page.isGap)
      assert.deepStrictEqual(page.entries, [])
      yield* store.append([online(device, 2)])
      assert.deepStrictEqual(yield* versionsAfter(page.next), [2])
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("a reader stays where it is when a transaction of another database ends while it looks", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    const { sql: other } = yield* database
    const [row] = yield* sql<{ readonly name: string }>`SELECT current_database() AS name`
    yield* sql`ALTER DATABASE ${sql(row!.name)} SET search_path = public, pg_catalog`
    // What the statement sees that has a transaction in its snapshot, and looks for it when it has ended.
    yield* sql`CREATE TABLE has_ended (pid int)`
    yield* sql`CREATE VIEW pg_stat_activity AS SELECT * FROM pg_catalog.pg_stat_activity AS known
      WHERE NOT EXISTS (SELECT FROM has_ended WHERE has_ended.pid = known.pid)`
    yield* Effect.gen(function*() {
      const store = yield* FeedStore
      const { device } = yield* insertDevice
      const read = (after: string) => store.read({ projectId: device.projectId, after, limit: 10 })
      const [begun, ends] = [yield* Deferred.make<number>(), yield* Deferred.make<void>()]
      const writing = yield* other<{ readonly pid: number }>`SELECT pg_backend_pid() AS pid, pg_current_xact_id()::text`
        .pipe(
          Effect.tap(([row]) => Deferred.succeed(begun, row!.pid)),
          Effect.tap(() => Deferred.await(ends)),
          other.withTransaction,
          Effect.forkChild
        )
      const pid = yield* Deferred.await(begun)
      yield* store.append([online(device, 1)])
      const { entries, next } = yield* read(feedStart)
      assert.lengthOf(entries, 1)
      yield* sql`INSERT INTO has_ended VALUES (${pid})`
      const page = yield* read(next)
      yield* Deferred.succeed(ends, undefined)
      yield* Fiber.join(writing)
      assert.deepInclude(page, { entries: [], next, isGap: false })
      yield* store.append([online(device, 2)])
      assert.deepStrictEqual(yield* versionsAfter(next), [2])
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("finds the place of a time among events of many hours", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    yield* Effect.gen(function*() {
      const store = yield* FeedStore
      const { device } = yield* insertDevice
      for (let i = 0; i < 50; i++) yield* store.append(Array.from({ length: 20 }, () => online(device, i, i)))
      yield* sql`UPDATE feed_slot SET opened_at = '2020-01-01'`
      const first = (time: number) =>
        Effect.map(Effect.flatMap(store.placeAt(time), versionsAfter), (versions) => versions[0])
      assert.strictEqual(yield* first(at - hour), 0)
      for (const i of [1, 17, 33, 49]) {
        // A probe looks at a hundred events: five hours.
        const found = yield* first(at + i * hour)
        assert.isAtMost(found!, i)
        assert.isAtLeast(found!, i - 6)
      }
      assert.isUndefined(yield* first(at + 60 * hour))
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("a read looks at what it returns, also in a part that the planner knows nothing of", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    yield* sql`ALTER DATABASE ${
      sql(new URL(Redacted.value(url)).pathname.slice(1))
    } SET plan_cache_mode = force_generic_plan`
    yield* Effect.gen(function*() {
      const store = yield* FeedStore
      const { device } = yield* insertDevice
      yield* sql`ALTER TABLE feed_1 SET (autovacuum_enabled = false)`
      for (let i = 0; i < 3; i++) {
        yield* store.append(Array.from({ length: 10_000 }, (_, version) => online(device, version)))
      }
      const { projectId } = device
      const { entries, next } = yield* store.read({ projectId, after: feedStart, limit: 100 })
      assert.lengthOf(entries, 100)
      yield* store.read({ projectId: undefined, after: next, limit: 100 })
    }).pipe(Effect.provide(storage(url)))
    const counts = yield* sql<{ readonly name: string; readonly tuples: bigint }>`
      SELECT indexrelname AS name, idx_tup_read AS tuples FROM pg_stat_user_indexes WHERE relname = 'feed_1'
      UNION ALL SELECT 'all', seq_tup_read FROM pg_stat_user_tables WHERE relname = 'feed_1'`.pipe(
      Effect.map((rows) => new Map(rows.map(({ name, tuples }) => [name, Number(tuples)]))),
      // Each connection tells by itself.
      (counts) =>
        eventually(counts, {
          until: (counts) => counts.get("feed_1_project_xid_seq_idx")! > 0 && counts.get("feed_1_xid_seq_idx")! > 0
        })
    )
    assert.isBelow(counts.get("feed_1_project_xid_seq_idx")!, 1000)
    assert.isBelow(counts.get("feed_1_xid_seq_idx")!, 1000)
    assert.isBelow(counts.get("all")!, 1000)
  }).pipe(Effect.scoped))

it.live("a change of a device that cannot be recorded has not happened", () =>
  Effect.gen(function*() {
    const { url } = yield* database
    let isBroken = false
    const brokenFeed = Layer.effect(
      FeedStore,
      Effect.map(FeedStore, (store) => ({
        ...store,
        append: (events) =>
          isBroken
            ? new StoreError({ operation: "FeedStore.append", retryable: false, cause: "broken" })
            : store.append(events)
      }))
    )
    const cloud = DeviceCloud.layer.pipe(
      Layer.provideMerge(brokenFeed),
      Layer.provideMerge(storage(url)),
      Layer.provide(PlatformNode.layer)
    )
    yield* Effect.gen(function*() {
      const devices = yield* Devices
      const product = yield* Fixtures.createProduct()
      const { deviceId } = yield* Fixtures.createDevice(product)
      const list = devices.list(defaultProjectId, {}, { page: 1, pageSize: 10 })
      isBroken = true
      assert.strictEqual((yield* Effect.flip(devices.disable(defaultProjectId, deviceId)))._tag, "StoreError")
      assert.strictEqual((yield* Effect.flip(devices.remove(defaultProjectId, deviceId)))._tag, "StoreError")
      assert.isTrue(Exit.isFailure(yield* Effect.exit(Fixtures.createDevice(product))))
      isBroken = false
      const { items } = yield* list
      assert.deepStrictEqual(items.map(({ device }) => [device.deviceId, device.enabled]), [[deviceId, true]])
      yield* devices.disable(defaultProjectId, deviceId)
      yield* devices.remove(defaultProjectId, deviceId)
      const { entries } = yield* (yield* FeedStore).read({
        projectId: defaultProjectId,
        after: feedStart,
        limit: 10,
        select: { deviceIds: [deviceId] }
      })
      assert.deepStrictEqual(
        entries.map(({ event }) => event._tag === "DeviceLifecycle" ? event.action : event._tag),
        ["create", "disable", "delete"]
      )
    }).pipe(Effect.provide(cloud))
  }).pipe(Effect.scoped))
