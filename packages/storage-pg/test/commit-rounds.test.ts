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

/** The next reads of shadows fail in this way. */
const failures: Array<SqlError.SqlErrorReason> = []

const isReadOfShadows = (args: ReadonlyArray<unknown>): boolean =>
  Array.isArray(args[0]) && String(args[0][0]).includes("SELECT device.device_id, shadow.version")

/** A client whose reads of shadows fail when the test says so; everything else goes to PostgreSQL. */
const failingClient = (url: Redacted.Redacted) =>
  Layer.effect(
    PgClient.PgClient,
    Effect.map(PgClient.PgClient, (sql) =>
      new Proxy(sql, {
        apply: (target, self, args) => {
          const statement = Reflect.apply(target, self, args) as Effect.Effect<unknown, SqlError.SqlError>
          return isReadOfShadows(args)
            ? Effect.suspend(() => {
              const reason = failures.shift()
              return reason === undefined ? statement : Effect.fail(new SqlError.SqlError({ reason }))
            })
            : statement
        }
      }))
  ).pipe(Layer.provideMerge(PgClient.layer({ url })))

const report = (device: Device, value: number): DeviceCommit<void> => ({
  deviceId: device.deviceId,
  update: (shadow: Shadow) => [
    undefined,
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

/** Stores an event and leaves the shadow as it is: a remembered shadow must be read again first. */
const say = (device: Device): DeviceCommit<void> => ({
  deviceId: device.deviceId,
  update: (shadow) => [undefined, shadow, {
    happened: [{ _tag: "EventReported", device, at, eventId: "alarm", value: { code: 1 }, time: at }],
    reactions: []
  }]
})

const range = { start: 0, end: 8.64e15, limit: 100, order: "asc" } as const

const reasons = {
  "can pass": new SqlError.ConnectionError({ cause: new Error("gone") }),
  "cannot pass": new SqlError.SqlSyntaxError({ cause: new Error("wrong") })
}

for (const [kind, reason] of Object.entries(reasons)) {
  it.live(`what the first transaction of a batch stored is stored once when a later one fails and it ${kind}`, () =>
    Effect.gen(function*() {
      const url = yield* newDatabase
      yield* Effect.gen(function*() {
        const store = yield* UplinkStore
        const history = yield* HistoryStore
        const { device: first } = yield* insertDevice
        const { device: second } = yield* insertDevice
        yield* store.commit({ devices: [report(first, 1), report(second, 1)], commands: [] })

        failures.push(reason)
        const batch = { devices: [report(first, 2), say(second)], commands: [] }
        const exit = yield* Effect.exit(store.commit(batch))
        assert.deepStrictEqual(failures, [])
        if (kind === "can pass") {
          assert.deepStrictEqual(exit, Exit.succeed([Option.some(undefined), Option.some(undefined)]))
        } else {
          // A defect: whoever repeats a failed batch repeats no defect.
          assert.isTrue(Exit.hasDies(exit))
        }
        const samples = yield* history.samples(first.deviceId, "power", range)
        assert.deepStrictEqual(samples.map(({ value }) => value), [1, 2])
        assert.lengthOf(yield* history.events(second.deviceId, "alarm", range), kind === "can pass" ? 1 : 0)
      }).pipe(Effect.provide(StoragePg.layerClient.pipe(Layer.provide([failingClient(url), TestKeyRing.layer]))))
    }).pipe(Effect.scoped))
}
