import * as HistoryClickHouse from "@device-cloud/history-clickhouse"
import { HistoryStoreContract } from "@device-cloud/testing/contracts"
import { describe } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as ClickHouseTestServer from "./ClickHouseTestServer.ts"

describe.skipIf(!ClickHouseTestServer.isInstalled)(ClickHouseTestServer.named("history on ClickHouse"), () => {
  const store = Layer.unwrap(Effect.gen(function*() {
    const server = yield* ClickHouseTestServer.make
    yield* server.start
    return HistoryClickHouse.layer({ url: server.url })
  }))
  HistoryStoreContract.suite("ClickHouse", store)
})
