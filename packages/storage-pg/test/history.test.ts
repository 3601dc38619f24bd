import {
  type Device,
  DeviceStore,
  type DomainEvent,
  FeedStore,
  type HistoryRange,
  HistoryStore,
  type Json
} from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, TestKeyRing } from "@device-cloud/testing"
import { insertDevice } from "@device-cloud/testing/contracts"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Clock, Context, Deferred, Effect, Equal, Fiber, Layer, type Redacted, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { newEmptyDatabase } from "../../../vitest.storages.ts"
import { mergeDay } from "../src/HistoryMerger.ts"
import * as HistoryPacker from "../src/HistoryPacker.ts"
import { migrate } from "../src/Migrator.ts"
import { migrations } from "../src/Migrations.ts"

const day = 86_400_000
const hour = 3_600_000
const at = Date.UTC(2026, 0, 1)
const all: HistoryRange = { start: 0, end: 8.64e15, limit: 100_000, order: "asc" }

const database = Effect.gen(function*() {
  const url = yield* newEmptyDatabase
  const sql = Context.get(yield* Layer.build(PgClient.layer({ url })), PgClient.PgClient)
  return { url, sql }
})

const storage = (url: Redacted.Redacted) => Layer.fresh(StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer)))

type Triple = readonly [id: string, time: number, value: Json]

/** What a device has said, as the feed has it. */
const reports = (device: Device, samples: ReadonlyArray<Triple>): ReadonlyArray<DomainEvent> =>
  samples.map(([id, time, value]) => ({
    _tag: "PropertiesReported",
    device,
    at,
    properties: { [id]: { value, time } }
  }))

const occurrences = (device: Device, events: ReadonlyArray<Triple>): ReadonlyArray<DomainEvent> =>
  events.map(([eventId, time, value]) => ({ _tag: "EventReported", device, at, eventId, time, value }))

const record = (events: ReadonlyArray<DomainEvent>) => FeedStore.use((feed) => feed.append(events))

/** Everything that the history has of a device, in all ways to read it. */
const readAll = Effect.fnUntraced(function*({ deviceId }: Device, ids: ReadonlyArray<string>) {
  const store = yield* HistoryStore
  const samples = yield* Effect.forEach(ids, (id) => store.samples(deviceId, id, all))
  const latest = yield* Effect.forEach(ids, (id) => store.samples(deviceId, id, { ...all, limit: 5, order: "desc" }))
  const chunks = yield* Stream.runCollect(store.scan(deviceId, { start: 0, end: all.end, propertyIds: undefined }))
  const scanned = chunks.flat()
  assert.deepStrictEqual(ids.map((id) => scanned.filter(({ propertyId }) => propertyId === id)), samples)
  assert.deepStrictEqual(yield* store.devicesWithin([deviceId], all), [deviceId])
  return {
    samples,
    latest,
    events: yield* store.events(deviceId, undefined, all),
    some: yield* store.events(deviceId, "e1", { ...all, start: at + day, limit: 20, order: "desc" }),
    buckets: yield* store.aggregate(deviceId, ids[0]!, { start: at - day, end: at + 9 * day, interval: 5 * hour })
  }
})

/** Until all is packed: a transaction of another database that ends at the same moment counts as one of this one. */
const round = (sql: PgClient.PgClient, enough?: number) =>
  Effect.repeat(
    Effect.andThen(
      HistoryPacker.round(sql, enough),
      sql`SELECT FROM feed WHERE xid >= (SELECT xid FROM history_place) LIMIT 1`
    ),
    { until: (left) => left.length === 0 }
  )

const counts = (sql: PgClient.PgClient) =>
  Effect.map(
    sql<{ readonly segments: number; readonly entries: number }>`
      SELECT count(*)::int AS segments, coalesce(sum(count), 0)::int AS entries FROM history_segment`,
    ([row]) => row!
  )

it.live("a read is the same before and after reports are packed in parts, and after segments are merged", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    yield* Effect.gen(function*() {
      const { device } = yield* insertDevice
      const { device: other } = yield* insertDevice
      const value = (i: number): Json => [i, `v${i}`, { i }, null, i / 7][i % 5]!
      // Late values, too, and several at the same time.
      const time = (i: number) => at + (i % 8) * day + Math.floor(i / 16) * 1000
      const expected: Array<Triple> = []
      for (let part = 0; part < 4; part++) {
        const triples = Array.from({ length: 60 }, (_, i): Triple => {
          const n = part * 60 + i
          return [`p${n % 3}`, time(n), value(n)]
        })
        expected.push(...triples)
        for (let i = 0; i < 60; i += 10) {
          yield* record([
            ...reports(device, triples.slice(i, i + 10)),
            ...occurrences(device, [[`e${i % 3}`, time(i), value(i)], ["e1", time(i + 1), i]]),
            ...reports(other, [["p0", at + i, i]])
          ])
        }
        if (part === 3) break
        const before = yield* readAll(device, ["p0", "p1", "p2"])
        yield* round(sql, 25)
        assert.deepStrictEqual(yield* readAll(device, ["p0", "p1", "p2"]), before)
      }
      const { samples } = yield* readAll(device, ["p0", "p1", "p2"])
      assert.deepStrictEqual(
        samples,
        ["p0", "p1", "p2"].map((id) =>
          expected.filter(([propertyId]) => propertyId === id).sort(([, a], [, b]) => a - b)
            .map(([propertyId, time, value]) => ({ propertyId, time, value }))
        )
      )
      yield* round(sql)
      const before = yield* readAll(device, ["p0", "p1", "p2"])
      const packed = yield* counts(sql)
      for (let i = 0; i < 8; i++) yield* mergeDay(sql, at / day + i)
      assert.deepStrictEqual(yield* readAll(device, ["p0", "p1", "p2"]), before)
      // Three properties and three events on eight days, and those of the other device.
      const merged = yield* counts(sql)
      assert.deepStrictEqual(merged.entries, packed.entries)
      assert.isBelow(merged.segments, 60)
      assert.isAbove(packed.segments, 100)
      // What comes now is after what is merged, also at the same time.
      yield* record(reports(device, [["p0", expected[0]![1], "again"]]))
      const again = yield* readAll(device, ["p0"])
      yield* round(sql)
      assert.deepStrictEqual(yield* readAll(device, ["p0"]), again)
      yield* mergeDay(sql, at / day)
      assert.deepStrictEqual(yield* readAll(device, ["p0"]), again)
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("a scan has each value once when reports are packed meanwhile, and a read that runs again what came since", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    yield* Effect.gen(function*() {
      const { device } = yield* insertDevice
      const { samples, scan } = yield* HistoryStore
      const ids = ["p0", "p1", "p2", "p3"]
      const triplesFrom = (time: number) =>
        ids.flatMap((id) => [0, 1, 2].map((i): Triple => [id, time + i * day, `${id} ${i}`]))
      const times = (from: ReadonlyArray<number>) => from.flatMap((time) => [0, 1, 2].map((i) => time + i * day))
      yield* record(reports(device, triplesFrom(at)))
      yield* round(sql)
      yield* record(reports(device, triplesFrom(at + 1)))
      const read = samples(device.deviceId, "p0", all)
      const timesOfRead = Effect.map(read, (found) => found.map(({ time }) => time))
      const ofTwo = times([at, at + 1]).sort((a, b) => a - b)
      assert.deepStrictEqual(yield* timesOfRead, ofTwo)

      const found: Array<Triple> = []
      let chunks = 0
      yield* scan(device.deviceId, { start: 0, end: all.end, propertyIds: undefined }).pipe(
        Stream.rechunk(1),
        Stream.runForEach((chunk) =>
          Effect.gen(function*() {
            found.push(...chunk.map(({ propertyId, time, value }): Triple => [propertyId, time, value]))
            // What was not packed is, and more comes in.
            if (++chunks !== 2) return
            yield* round(sql)
            yield* record(reports(device, [["p9", at, 0]]))
          })
        )
      )
      assert.isAbove(chunks, 2)
      for (const id of ids) {
        assert.deepStrictEqual(found.filter(([name]) => name === id).map(([, time]) => time), ofTwo, id)
      }

      assert.deepStrictEqual(yield* timesOfRead, ofTwo)
      yield* record(reports(device, triplesFrom(at + 2)))
      assert.deepStrictEqual(yield* timesOfRead, times([at, at + 1, at + 2]).sort((a, b) => a - b))
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("a day that is merged is merged again only when something of it comes late", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    yield* Effect.gen(function*() {
      const { device } = yield* insertDevice
      const unmerged = sql`SELECT day FROM history_unmerged`
      const pack = Effect.fnUntraced(function*(value: number) {
        yield* record(reports(device, [["p", at, value]]))
        yield* round(sql)
        assert.deepStrictEqual(yield* unmerged, [{ day: at / day }])
      })
      // Marked between two milliseconds, as nearly all days are.
      const mergeLater = Effect.andThen(
        sql`UPDATE history_unmerged SET marked_at = date_trunc('hour', now()) - interval '7 hours 1 microsecond'`,
        round(sql)
      )
      yield* pack(1)
      yield* pack(2)
      yield* mergeLater
      assert.deepStrictEqual(yield* unmerged, [])
      assert.deepStrictEqual(yield* counts(sql), { segments: 1, entries: 2 })
      yield* pack(3)
      yield* mergeLater
      assert.deepStrictEqual(yield* unmerged, [])
      assert.deepStrictEqual(yield* counts(sql), { segments: 1, entries: 3 })
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("a series of long values is not merged: a server holds some megabytes of a day at once", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    yield* Effect.gen(function*() {
      const { device } = yield* insertDevice
      const parts = 24
      for (let i = 0; i < parts; i++) {
        yield* record(reports(device, [["long", at + i, `${i} `.repeat(40_000)], ["short", at + i, i]]))
        yield* round(sql)
      }
      const before = yield* readAll(device, ["long", "short"])
      yield* mergeDay(sql, at / day)
      assert.deepStrictEqual(yield* readAll(device, ["long", "short"]), before)
      const segments = yield* sql<{ readonly count: number }>`
        SELECT count(*)::int AS count FROM history_segment GROUP BY series ORDER BY count`
      assert.deepStrictEqual(segments.map(({ count }) => count), [1, parts])
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("values of one time keep their order when there are too many of them for one segment", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    yield* Effect.gen(function*() {
      const { device } = yield* insertDevice
      const { samples } = yield* HistoryStore
      const record = (time: number, from: number, to: number) =>
        sql`
          INSERT INTO feed (slot, kind, project, device, xid, at, body)
          SELECT 1, 1, project.seq, device.id, (SELECT xid FROM history_place), now(),
            json_build_array(json_build_array('p', ${time}::bigint, i))
          FROM generate_series(${from}::int, ${to}::int) AS i, device JOIN project ON project.id = device.project_id
          WHERE device.device_id = ${device.deviceId}`
      // The clock of the device stands still on the second day; the later a day, the earlier it is stored.
      for (let part = 0; part < 42; part++) {
        yield* record(at + day, part * 1000, part * 1000 + 999)
        yield* record(at + (43 - part) * day, -part, -part)
        yield* round(sql)
      }
      const read = samples(device.deviceId, "p", all)
      const before = yield* read
      assert.deepStrictEqual(
        before.filter(({ time }) => time === at + day).map(({ value }) => value),
        Array.from({ length: 42_000 }, (_, i) => i)
      )
      yield* mergeDay(sql, at / day + 1)
      yield* record(at, -1, -1)
      yield* round(sql)
      const values = before.map(({ value }) => value)
      const latest = yield* samples(device.deviceId, "p", { ...all, order: "desc" })
      // Not what deepStrictEqual says: it would take half a minute to say how 42,000 values differ.
      assert.isTrue(Equal.equals(latest.toReversed().slice(1).map(({ value }) => value), values))
      assert.isTrue(Equal.equals((yield* read).slice(1).map(({ value }) => value), values))
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("processes that pack at once pack everything once, and more than one page of the feed", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    yield* Effect.gen(function*() {
      const { device } = yield* insertDevice
      yield* sql`
        INSERT INTO feed (slot, kind, project, device, xid, at, body)
        SELECT 1, 1, project.seq, device.id, i / 9, now(), json_build_array(json_build_array('p', ${at} + i, i))
        FROM generate_series(1, 12000) AS i, device JOIN project ON project.id = device.project_id
        WHERE device.device_id = ${device.deviceId}`
      yield* sql`UPDATE history_place SET packed_at = now() - interval '11 minutes'`
      yield* Effect.all(
        [storage(url), storage(url), storage(url)].map((node) =>
          HistoryStore.use(({ maintain }) => maintain).pipe(Effect.provide(node))
        ),
        { concurrency: "unbounded" }
      )
      // Without the lease: the place that has moved is what counts.
      yield* Effect.all([round(sql, 100), round(sql, 100)], { concurrency: "unbounded" })
      assert.strictEqual((yield* counts(sql)).entries, 12_000)
      const found = yield* HistoryStore.use((store) =>
        store.aggregate(device.deviceId, "p", { start: 0, end: all.end, interval: 1e15 })
      )
      assert.deepInclude(found[0], { count: 12_000, min: 1, max: 12_000, sum: 72_006_000 })
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("packs large values in transactions that hold some of them each", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    yield* Effect.gen(function*() {
      const { device } = yield* insertDevice
      yield* sql`
        INSERT INTO feed (slot, kind, project, device, xid, at, body)
        SELECT 1, 1, project.seq, device.id, i, now(),
          json_build_array(json_build_array('p', ${at} + i, repeat('x', 1000000)))
        FROM generate_series(1, 60) AS i, device JOIN project ON project.id = device.project_id
        WHERE device.device_id = ${device.deviceId}`
      yield* sql`CREATE TABLE packed (xid bigint)`
      yield* sql`
        CREATE FUNCTION note_packed() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN INSERT INTO packed VALUES (NEW.xid); RETURN NEW; END $$`
      yield* sql`
        CREATE TRIGGER note_packed BEFORE UPDATE OF xid ON history_place
        FOR EACH ROW EXECUTE FUNCTION note_packed()`
      yield* round(sql)
      assert.strictEqual((yield* counts(sql)).entries, 60)
      // Of 16 MiB each.
      const packed = yield* sql<{ readonly xid: bigint }>`SELECT xid FROM packed ORDER BY xid`
      assert.deepStrictEqual(packed.slice(0, -1).map(({ xid }) => xid), [18n, 35n, 52n])
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("what a deleted device has said is gone and does not come back", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    yield* Effect.gen(function*() {
      const store = yield* HistoryStore
      const { device } = yield* insertDevice
      const { device: left } = yield* insertDevice
      yield* record([...reports(device, [["p", at, 1]]), ...reports(left, [["p", at, 1]])])
      yield* round(sql)
      yield* record(reports(device, [["p", at, 2]]))
      assert.lengthOf(yield* store.samples(device.deviceId, "p", all), 2)
      yield* (yield* DeviceStore).remove(device.projectId, device.deviceId)
      assert.deepStrictEqual(yield* store.samples(device.deviceId, "p", all), [])
      yield* round(sql)
      assert.deepStrictEqual(yield* counts(sql), { segments: 1, entries: 1 })
      assert.lengthOf(yield* store.samples(left.deviceId, "p", all), 1)
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("the history is maintained after the clock of the database was ahead, and forgets devices that were deleted", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    yield* Effect.gen(function*() {
      const store = yield* HistoryStore
      const { device } = yield* insertDevice
      const { device: left } = yield* insertDevice
      for (const value of [1, 2]) {
        yield* record([...reports(device, [["p", at, value]]), ...reports(left, [["p", at, value]])])
        yield* round(sql)
      }
      const ahead = sql`now() + interval '40 days'`
      yield* sql`UPDATE history_place SET packed_at = ${ahead}, swept_at = ${ahead}, leased_until = ${ahead}`
      yield* sql`UPDATE history_unmerged SET marked_at = ${ahead}`
      yield* (yield* DeviceStore).remove(device.projectId, device.deviceId)
      yield* store.maintain
      assert.deepStrictEqual(yield* counts(sql), { segments: 1, entries: 2 })
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("parts that are too old go while others read and write, by the days of each product", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    yield* Effect.gen(function*() {
      const store = yield* HistoryStore
      const { device } = yield* insertDevice
      const { device: brief } = yield* insertDevice
      yield* sql`INSERT INTO history_retention VALUES (${brief.productKey}, 3)`
      yield* store.prune({ keepDays: 36 })
      const now = yield* Clock.currentTimeMillis
      const ages = [100, 30, 10, 2, 0]
      for (const reporter of [device, brief]) {
        yield* record(reports(reporter, ages.map((age) => ["p", now - age * day, age])))
      }
      yield* round(sql)
      const values = ({ deviceId }: Device) =>
        Effect.map(store.samples(deviceId, "p", all), (samples) => samples.map(({ value }) => value))
      // What is too old already is not kept.
      assert.deepStrictEqual(yield* values(device), [30, 10, 2, 0])
      assert.deepStrictEqual(yield* values(brief), [2, 0])
      const [begun, ends] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const reading = yield* Effect.forkChild(sql.withTransaction(
        sql`SELECT FROM history_segment`.pipe(
          Effect.andThen(Deferred.succeed(begun, undefined)),
          Effect.andThen(Deferred.await(ends))
        )
      ))
      yield* Deferred.await(begun)
      const then = now + 20 * day
      const pruning = yield* store.prune({ keepDays: 36 }).pipe(
        Effect.updateService(Clock.Clock, (clock) =>
          Object.assign(Object.create(clock), {
            currentTimeMillisUnsafe: () => then,
            currentTimeMillis: Effect.succeed(then)
          })),
        Effect.forkChild
      )
      yield* eventually(sql`SELECT FROM pg_inherits WHERE inhdetachpending`, { until: (rows) => rows.length === 1 })
      // It waits for the reader, and nobody waits for it.
      yield* record(reports(device, [["p", now + 1, "now"]]))
      assert.strictEqual((yield* values(device)).at(-1), "now")
      assert.isUndefined(pruning.pollUnsafe())
      yield* Deferred.succeed(ends, undefined)
      yield* Fiber.join(reading)
      yield* Fiber.join(pruning)
      assert.deepStrictEqual(yield* values(device), [10, 2, 0, "now"])
      assert.deepStrictEqual(yield* values(brief), [])
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("the feed keeps what is not packed, unless another store keeps the history", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    yield* Effect.gen(function*() {
      const [feed, store] = [yield* FeedStore, yield* HistoryStore]
      const { device } = yield* insertDevice
      const prune = (isHistoryApart: boolean) => feed.prune({ keepMillis: hour, maxBytes: 1, isHistoryApart })
      const values = Effect.map(
        store.samples(device.deviceId, "p", all),
        (samples) => samples.map(({ value }) => value)
      )
      yield* record(reports(device, [["p", at, 1]]))
      yield* prune(false)
      yield* record(reports(device, [["p", at, 2]]))
      yield* prune(false)
      assert.deepStrictEqual(yield* values, [1, 2])
      yield* round(sql)
      yield* prune(false)
      assert.lengthOf(yield* sql`SELECT FROM feed`, 0)
      assert.deepStrictEqual(yield* values, [1, 2])
      yield* record(reports(device, [["p", at, 3]]))
      yield* prune(true)
      yield* prune(true)
      assert.deepStrictEqual(yield* values, [1, 2])
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))

it.live("the history of a database of an earlier version stays as it is", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* database
    const earlier = Object.fromEntries(Object.entries(migrations).filter(([name]) => name < "0036"))
    yield* Effect.provideService(migrate(earlier, []), SqlClient.SqlClient, sql)
    yield* sql`INSERT INTO property_sample (device_id, property_id, time, value)
      SELECT 'd', 'p', to_timestamp((${at} + (i / 2) * 10000) / 1000.0), to_json(i) FROM generate_series(1, 20000) AS i`
    yield* sql`INSERT INTO property_sample (device_id, property_id, time, value)
      VALUES ('d', 'q', to_timestamp(0.123), '"NUL \\u0000, half \\ud800"'), ('e', 'q', now(), '{"a": [1e-300]}')`
    yield* sql`INSERT INTO device_event (device_id, event_id, time, value) VALUES ('d', 'q', to_timestamp(1), '[]')`
    yield* Effect.gen(function*() {
      const store = yield* HistoryStore
      const device = { deviceId: "d" } as Device
      const { buckets } = yield* readAll(device, ["p", "q"])
      assert.strictEqual(buckets.reduce((sum, { count }) => sum + count, 0), 20_000)
      const samples = yield* store.samples(device.deviceId, "p", {
        ...all,
        start: at + 4_000_000,
        limit: 1000
      })
      assert.deepStrictEqual(samples.map(({ value }) => value), Array.from({ length: 1000 }, (_, i) => 800 + i))
      assert.strictEqual(samples[0]!.time, at + 4_000_000)
      assert.deepStrictEqual(yield* store.samples(device.deviceId, "q", all), [
        { propertyId: "q", time: 123, value: "NUL \0, half \ud800" }
      ])
      assert.deepStrictEqual(yield* store.events(device.deviceId, undefined, all), [{
        eventId: "q",
        time: 1000,
        value: []
      }])
      const before = yield* counts(sql)
      yield* mergeDay(sql, at / day)
      assert.strictEqual((yield* counts(sql)).entries, before.entries)
    }).pipe(Effect.provide(storage(url)))
  }).pipe(Effect.scoped))
