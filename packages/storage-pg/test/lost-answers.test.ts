import { type Device, type DeviceCommit, HistoryStore, type Shadow, UplinkStore } from "@device-cloud/core"
import * as StoragePg from "@device-cloud/storage-pg"
import { TestKeyRing } from "@device-cloud/testing"
import { insertDevice } from "@device-cloud/testing/contracts"
import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Layer, Option, type Redacted } from "effect"
import { SqlError } from "effect/sql"
import { newDatabase } from "../../../vitest.storages.ts"

const at = Date.UTC(2026, 0, 1)

type Run = Effect.Effect<unknown, SqlError.SqlError>

/** What happens to the next statements that the uplink writes with. */
const fates: Array<(statement: Run) => Run> = []

const gone = Effect.fail(new SqlError.SqlError({ reason: new SqlError.ConnectionError({ cause: new Error("gone") }) }))

const isWrite = (args: ReadonlyArray<unknown>): boolean =>
  Array.isArray(args[0]) && String(args[0][0]).startsWith("WITH ") && String(args[0][1]).includes("FROM written")

const client = (url: Redacted.Redacted) =>
  Layer.effect(
    PgClient.PgClient,
    Effect.map(PgClient.PgClient, (sql) =>
      new Proxy(sql, {
        apply: (target, self, args) => {
          const statement = Reflect.apply(target, self, args) as Run
          return isWrite(args) ? Effect.suspend(() => fates.shift()?.(statement) ?? statement) : statement
        }
      }))
  ).pipe(Layer.provideMerge(PgClient.layer({ url })))

const report = (device: Device, value: number): DeviceCommit<number> => ({
  deviceId: device.deviceId,
  update: (shadow: Shadow) => [
    value,
    {
      ...shadow,
      version: shadow.version + 1,
      reported: { ...shadow.reported, power: { value, time: at + value } },
      updatedAt: at + value
    },
    {
      happened: [{ _tag: "PropertiesReported", device, at, properties: { power: { value, time: at + value } } }],
      reactions: []
    }
  ]
})

/** Stores an event and leaves the shadow as it is. */
const say = (device: Device): DeviceCommit<number> => ({
  deviceId: device.deviceId,
  update: (shadow) => [0, shadow, {
    happened: [{ _tag: "EventReported", device, at, eventId: "alarm", value: { code: 1 }, time: at }],
    reactions: []
  }]
})

const range = { start: 0, end: 8.64e15, limit: 100, order: "asc" } as const

/** Two devices, with one report of each stored, on a database of their own. */
const withDevices = <A, E>(
  use: (first: Device, second: Device) => Effect.Effect<A, E, UplinkStore | HistoryStore | PgClient.PgClient>
) =>
  Effect.gen(function*() {
    const url = yield* newDatabase
    const own = client(url)
    return yield* Effect.gen(function*() {
      const { device: first } = yield* insertDevice
      const { device: second } = yield* insertDevice
      yield* (yield* UplinkStore).commit({ devices: [report(first, 1), report(second, 1)], commands: [] })
      return yield* use(first, second)
    }).pipe(Effect.provide(StoragePg.layerClient.pipe(Layer.provideMerge(own), Layer.provide(TestKeyRing.layer))))
  }).pipe(Effect.scoped)

const powers = (device: Device) =>
  Effect.flatMap(
    HistoryStore,
    (history) =>
      Effect.map(history.samples(device.deviceId, "power", range), (samples) => samples.map(({ value }) => value))
  )

it.live("a batch whose answer is lost is stored once, and its results are known", () =>
  withDevices(Effect.fnUntraced(function*(first, second) {
    const store = yield* UplinkStore
    fates.push((statement) => Effect.andThen(statement, gone))
    const results = yield* store.commit({ devices: [report(first, 2), report(second, 2)], commands: [] })
    assert.deepStrictEqual(results, [Option.some(2), Option.some(2)])
    // What was said without a change of the shadow leaves no trace but its receipt.
    fates.push((statement) => Effect.andThen(statement, gone))
    yield* store.commit({ devices: [say(second)], commands: [] })
    assert.deepStrictEqual(fates, [])
    assert.deepStrictEqual([yield* powers(first), yield* powers(second)], [[1, 2], [1, 2]])
    assert.lengthOf(yield* (yield* HistoryStore).events(second.deviceId, "alarm", range), 1)
  })))

it.live("a device that another writer was faster for is written once after a lost answer, too", () =>
  withDevices(Effect.fnUntraced(function*(first, second) {
    const store = yield* UplinkStore
    const sql = yield* PgClient.PgClient
    fates.push((statement) =>
      sql`UPDATE shadow SET version = version + 5 WHERE device_id = ${second.deviceId}`.pipe(
        Effect.andThen(statement),
        Effect.andThen(gone)
      )
    )
    const results = yield* store.commit({ devices: [report(first, 2), report(second, 2)], commands: [] })
    assert.deepStrictEqual(results, [Option.some(2), Option.some(2)])
    assert.deepStrictEqual([yield* powers(first), yield* powers(second)], [[1, 2], [1, 2]])
    const [row] = yield* sql`SELECT version::int AS version FROM shadow WHERE device_id = ${second.deviceId}`
    assert.deepStrictEqual(row, { version: 7 })
  })))

it.live("a statement that was given up stores nothing when it arrives after all", () =>
  withDevices(Effect.fnUntraced(function*(first) {
    const store = yield* UplinkStore
    let late: Run = Effect.void
    fates.push((statement) => {
      late = statement
      return gone
    })
    const batch = { devices: [report(first, 2)], commands: [] }
    const error = yield* Effect.flip(store.commit(batch))
    assert.isTrue(error.retryable)
    yield* store.commit(batch)
    const arrived = yield* Effect.exit(late)
    assert.isTrue(Exit.isFailure(arrived))
    assert.deepStrictEqual(yield* powers(first), [1, 2])
  })))
