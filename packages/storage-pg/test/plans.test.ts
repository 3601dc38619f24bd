import { CommandStore, DeviceId, HistoryStore, JobStore, OtaStore, PresenceStore } from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { eventually, TestKeyRing } from "@device-cloud/testing"
import { insertDevice, newCommand } from "@device-cloud/testing/contracts"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Clock, Context, Effect, Layer, Option, Redacted } from "effect"
import { newDatabase } from "../../../vitest.storages.ts"
import { created, insertFirmware, newTask } from "../../testing/src/contracts/OtaSamples.ts"
import { dayOf, millisOfDay } from "../src/HistoryEntries.ts"

const at = Date.UTC(2026, 0, 1)

const judge = { nodeId: "judge", limits: { silence: 0, gap: 60_000 } }

const storage = (url: Redacted.Redacted) => Layer.fresh(StoragePg.layer({ url }).pipe(Layer.provide(TestKeyRing.layer)))

/** A database with tables, and plans as when statements have been used often. */
const withGenericPlans = Effect.gen(function*() {
  const url = yield* newDatabase
  const sql = Context.get(yield* Layer.build(PgClient.layer({ url })), PgClient.PgClient)
  const database = sql(new URL(Redacted.value(url)).pathname.slice(1))
  yield* Effect.scoped(Layer.build(storage(url)))
  yield* sql`ALTER DATABASE ${database} SET plan_cache_mode = force_generic_plan`
  return { database, sql, url }
})

it.live("plans that serve all parameters find open and ended commands, and devices of nodes, by their own indexes", () =>
  Effect.gen(function*() {
    const { database, sql, url } = yield* withGenericPlans
    // As on tables that have grown.
    yield* sql`ALTER DATABASE ${database} SET enable_seqscan = off`
    // What a connection has counted is certain when it has ended.
    yield* Effect.gen(function*() {
      const { device } = yield* insertDevice
      const { deviceId } = device
      const command = newCommand(device, { createdAt: at })
      const commands = yield* CommandStore
      const [enqueued] = yield* commands.enqueue([{ command }])
      assert.isObject(enqueued)
      const { command: { messageId } } = enqueued as Exclude<typeof enqueued, string | undefined>
      yield* (yield* PresenceStore).record([
        { _tag: "Online", deviceId, connectionId: "connection", nodeId: "node", ip: "::1", at }
      ])
      yield* commands.unfinished({ deviceId, after: 0, limit: 10, now: at })
      yield* commands.advance([{ deviceId, messageId, state: "acked", code: null, message: "", data: {}, at }])
      yield* commands.expire({ now: at, grace: 0, limit: 10 })
      yield* commands.prune({ before: at, limit: 10 })
      const presence = yield* PresenceStore
      yield* presence.heartbeat(judge.nodeId, judge.limits)
      yield* presence.connectionsOf([deviceId])
      yield* presence.lapsed({ _tag: "NodeStops", nodeId: "node" }, 10)
      yield* presence.lapsed({ _tag: "NodeSilent", nodeId: "node", judge }, 10)
      yield* presence.silentNodes(judge)
    }).pipe(Effect.provide(storage(url)), Effect.scoped)
    const scans = yield* sql<{ readonly name: string; readonly scans: bigint }>`
      SELECT indexrelname AS name, idx_scan AS scans FROM pg_stat_user_indexes WHERE relname IN ('command', 'presence')`
      .pipe(
        Effect.map((rows) => Object.fromEntries(rows.map(({ name, scans }) => [name, Number(scans)]))),
        // Each connection tells by itself.
        (scans) =>
          eventually(scans, {
            until: ({ command_due = 0, command_ended_at = 0, command_open = 0, presence_of_node = 0 }) =>
              command_due > 0 && command_ended_at > 0 && command_open >= 3 && presence_of_node >= 3
          })
      )
    assert.strictEqual(scans["command_pkey"], 0)
  }).pipe(Effect.scoped))

it.live("a slice of a dead node's devices is read without reading the devices before it", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* withGenericPlans
    const tuples = sql<{ readonly read: number }>`SELECT idx_tup_read::int AS read FROM pg_stat_user_indexes
      WHERE indexrelname = 'device_pkey'`
    yield* Effect.gen(function*() {
      const { device: { deviceId } } = yield* insertDevice
      yield* sql`INSERT INTO device
          (device_id, project_id, product_key, device_name, device_secret, nickname, batch_id, created_at, updated_at)
        SELECT 'many' || i, project_id, product_key, 'many' || i, '', '', 0, now(), now()
        FROM device, generate_series(10000, 14999) AS i WHERE device_id = ${deviceId}`
      yield* sql`INSERT INTO presence (device_id, node_id, connection_id) SELECT device_id, 'node', device_id FROM device`
      yield* sql`ANALYZE device, presence`
    }).pipe(Effect.provide(storage(url)), Effect.scoped)
    yield* sql`SELECT pg_stat_reset()`
    const found = yield* Effect.flatMap(
      PresenceStore,
      ({ lapsed }) => lapsed({ _tag: "NodeStops", nodeId: "node" }, 10, DeviceId.make("many14900"))
    ).pipe(Effect.provide(storage(url)), Effect.scoped)
    assert.deepStrictEqual(
      found.map(({ deviceId }) => String(deviceId)),
      Array.from({ length: 10 }, (_, i) => `many${14901 + i}`)
    )
    const [row] = yield* eventually(tuples, { until: ([row]) => row!.read >= 10 })
    assert.isBelow(row!.read, 1000)
  }).pipe(Effect.scoped))

it.live("a job that the statistics of its table do not know ends, however many devices it has", () =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    yield* Effect.gen(function*() {
      const sql = yield* PgClient.PgClient
      const { device: { productKey, projectId } } = yield* insertDevice
      // For each device beside each other, this takes longer than a test may.
      yield* sql`INSERT INTO device
          (device_id, project_id, product_key, device_name, device_secret, nickname, batch_id, created_at, updated_at)
        SELECT 'many' || i, ${projectId}, ${productKey}, 'many' || i, '', '', 0, now(), now()
        FROM generate_series(2, 30000) AS i`
      const jobs = yield* JobStore
      const created = yield* jobs.create(
        { projectId, productKey, name: "job", description: "", document: {}, timeout: 0, createdAt: at },
        { _tag: "Product", productKey },
        5
      )
      assert(created._tag === "Created")
      assert.isTrue(yield* jobs.cancel(created.job.jobId, at))
      const { counts } = Option.getOrThrow(yield* jobs.get(projectId, created.job.jobId))
      assert.deepInclude(counts, { queued: 0, cancelled: 30_000 })
    }).pipe(Effect.provide(Layer.merge(storage(url), PgClient.layer({ url }))), Effect.scoped)
  }).pipe(Effect.scoped))

it.live("devices that have values are found by indexes, in the parts of the days of the range", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* withGenericPlans
    const today = dayOf(yield* Clock.currentTimeMillis)
    const deviceId = yield* Effect.gen(function*() {
      const { device: { deviceId } } = yield* insertDevice
      yield* sql`INSERT INTO device
          (device_id, project_id, product_key, device_name, device_secret, sealed_with, nickname, batch_id, created_at,
          updated_at)
        SELECT 'silent' || i, project_id, product_key, 'silent' || i, device_secret, sealed_with, '', 0, now(), now()
        FROM device, generate_series(0, 99) AS i WHERE device_id = ${deviceId}`
      const history = yield* HistoryStore
      yield* history.prune({ keepDays: 12 })
      const samples = [0, 1, 2, 3].map((ago) => ({ propertyId: "t", time: (today - ago) * millisOfDay, value: ago }))
      yield* history.append([{ deviceId, samples, events: [] }])
      // Reports of a few other devices. To look for one of them in the table itself would seem quick.
      yield* sql`INSERT INTO feed (slot, kind, project, device, xid, at, body)
        SELECT 1, 1, 1, -(i % 5), i / 9, now(), '[["t",1,1]]' FROM generate_series(1, 5000) AS i`
      yield* sql`ANALYZE`
      return deviceId
    }).pipe(Effect.provide(storage(url)), Effect.scoped)
    // What the connections before have counted is certain when they have ended.
    yield* eventually(
      sql`SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`,
      { until: (others) => others.length === 0 }
    )
    yield* sql`SELECT pg_stat_reset()`
    const asked = [deviceId, ...Array.from({ length: 100 }, (_, i) => DeviceId.make(`silent${i}`))]
    const start = (today - 2) * millisOfDay
    const found = yield* HistoryStore.use((history) =>
      history.devicesWithin(asked, { start, end: start + millisOfDay - 1 })
    ).pipe(Effect.provide(storage(url)), Effect.scoped)
    assert.deepStrictEqual(found, [deviceId])
    const scanned = yield* eventually(
      sql<{ readonly name: string; readonly rows: number }>`
        SELECT relname AS name, seq_tup_read::int AS rows FROM pg_stat_user_tables
        WHERE (relname ~ '^history_segment_' OR relname = 'feed_1') AND seq_scan + idx_scan > 0 ORDER BY relname`,
      // Each connection tells by itself.
      { until: (tables) => tables.length >= 3 }
    )
    assert.deepStrictEqual(scanned, [
      { name: "feed_1", rows: 0 },
      { name: "history_segment_0", rows: 0 },
      { name: `history_segment_12_${today - 2}`, rows: 0 }
    ])
  }).pipe(Effect.scoped))

it.live("turns of a campaign or a job that tables do not know yet are found by indexes, and it is confirmed and cancelled", () =>
  Effect.gen(function*() {
    const { sql, url } = yield* withGenericPlans
    const devices = 30_000
    yield* Effect.gen(function*() {
      const { product } = yield* insertDevice
      const { productKey, projectId } = product
      yield* sql`INSERT INTO device
          (device_id, project_id, product_key, device_name, device_secret, nickname, batch_id, created_at, updated_at)
        SELECT 'many' || i, ${projectId}, ${productKey}, 'many' || i, '', '', 0, now(), now()
        FROM generate_series(2, ${devices}::int) AS i`
      const firmware = yield* insertFirmware(product)
      const jobs = yield* JobStore
      const upgrades = yield* OtaStore
      const dueJobs = jobs.claimDue({ now: at, late: at, again: at + 60_000, limit: devices })
      const dueUpgrades = upgrades.claimDue({ now: at, again: at + 60_000, limit: devices })
      // The plans are kept from a time when the tables are known to be empty.
      yield* sql`VACUUM ANALYZE job_task, ota_record`
      assert.deepStrictEqual(yield* dueJobs, [])
      assert.deepStrictEqual(yield* dueUpgrades, [])
      const job = yield* jobs.create(
        { projectId, productKey, name: "job", description: "", document: {}, timeout: 0, createdAt: at - 300_000 },
        { _tag: "Product", productKey },
        5
      )
      assert.strictEqual(job._tag, "Created")
      const { task: { taskId } } = created(
        yield* upgrades.createTask(
          newTask(firmware, { needAppConfirm: true, maximumPerMinute: devices }),
          { _tag: "All" },
          at
        )
      )
      assert.lengthOf(yield* dueJobs, devices)
      // For each device beside each other, these take longer than a test may.
      assert.isTrue(yield* upgrades.confirmTask(taskId, at - 60_000))
      assert.lengthOf(yield* dueUpgrades, devices)
      assert.isTrue(yield* upgrades.endTask(taskId, "cancelled", ["pending"], at))
    }).pipe(Effect.provide(storage(url)), Effect.scoped)
  }).pipe(Effect.scoped))
