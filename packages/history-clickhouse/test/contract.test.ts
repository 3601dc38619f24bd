import { DeviceId, HistoryStore } from "@device-cloud/core"
import * as HistoryClickHouse from "@device-cloud/history-clickhouse"
import { HistoryStoreContract } from "@device-cloud/testing/contracts"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as ClickHouseTestServer from "./ClickHouseTestServer.ts"

describe.skipIf(!ClickHouseTestServer.isInstalled)(ClickHouseTestServer.named("history on ClickHouse"), () => {
  const store = Layer.unwrap(Effect.gen(function*() {
    const server = yield* ClickHouseTestServer.make
    yield* server.start
    return HistoryClickHouse.layer({ url: server.url })
  }))
  HistoryStoreContract.suite("ClickHouse", store)

  it.live("a sum that is too large is not zero", () =>
    Effect.gen(function*() {
      const { aggregate, append } = yield* HistoryStore
      const deviceId = DeviceId.make("large")
      const samples = [1, 2].map((time) => ({ propertyId: "p", time, value: 1.7e308 }))
      yield* append([{ deviceId, samples, events: [] }])
      const [bucket] = yield* aggregate(deviceId, "p", { start: 0, end: 999, interval: 1000 })
      assert.isFalse(Number.isFinite(bucket!.sum))
    }).pipe(Effect.provide(store)))
})
