import { DeviceId, HistoryStore } from "@device-cloud/core"
import * as HistoryClickHouse from "@device-cloud/history-clickhouse"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import * as ClickHouseTestServer from "./ClickHouseTestServer.ts"

describe.skipIf(!ClickHouseTestServer.isInstalled)(ClickHouseTestServer.named("the space of ClickHouse"), () => {
  it.effect("comes back by months, when all that was stored in one is too old", () =>
    Effect.gen(function*() {
      const server = yield* TestClock.withLive(Effect.tap(ClickHouseTestServer.make, ({ start }) => start))
      const { origin, password, username } = new URL(Redacted.value(server.url))
      const headers = { "x-clickhouse-user": username, "x-clickhouse-key": password }
      const rows = Effect.promise(async () => {
        const count = (table: string) =>
          fetch(origin, { method: "POST", headers, body: `SELECT count() FROM ${table}` }).then((it) => it.text())
        return [await count("device_history"), await count("device_history_removed")].map(Number)
      })
      const store = yield* HistoryStore.pipe(Effect.provide(HistoryClickHouse.layer(server)))
      const [stays, goes] = [DeviceId.make("stays"), DeviceId.make("goes")]
      const at = (date: string) => TestClock.setTime(Date.parse(date))
      const append = (deviceId: DeviceId, date: string) =>
        store.append([{ deviceId, samples: [{ propertyId: "p", time: Date.parse(date), value: 1 }], events: [] }])

      yield* at("2026-01-15")
      yield* append(stays, "2026-01-15")
      yield* append(goes, "2026-01-15")
      yield* store.remove([goes])
      // What comes after a removal is there.
      yield* append(goes, "2026-01-16")
      yield* at("2026-02-15")
      yield* append(stays, "2026-02-15")
      assert.deepStrictEqual(yield* rows, [4, 1])
      yield* store.prune({ keepDays: 29 })
      assert.deepStrictEqual(yield* rows, [4, 1])
      const range = { start: 0, end: 8.64e15, limit: 10, order: "asc" } as const
      const times = (deviceId: DeviceId) =>
        Effect.map(store.samples(deviceId, "p", range), (samples) => samples.map(({ time }) => time))
      assert.deepStrictEqual(yield* times(goes), [])
      yield* store.prune({ keepDays: 31 })
      assert.deepStrictEqual(yield* times(goes), [Date.parse("2026-01-16")])
      yield* at("2026-03-10")
      yield* store.prune({ keepDays: 30 })
      assert.deepStrictEqual(yield* rows, [1, 0])
      assert.deepStrictEqual(yield* times(stays), [Date.parse("2026-02-15")])
    }))
})
