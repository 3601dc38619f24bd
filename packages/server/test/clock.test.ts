/**
 * A server whose system clock is wrong and jumps behaves as if nothing had happened.
 */
import { eventually } from "@device-cloud/testing"
import { callTo, ownerKey } from "@device-cloud/testing/http"
import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { fileURLToPath } from "node:url"
import { newDatabase } from "../../../vitest.storages.ts"
import { live, start, temporaryDirectory } from "./TestServer.ts"

interface Execution {
  /** ISO 8601. */
  readonly triggered_at: string
}

/** What a server's own clock, which is 20 seconds ahead, may differ from the time of the cloud, milliseconds. */
const storages = {
  PostgreSQL: { env: Effect.map(newDatabase, (url) => ({ DATABASE_URL: Redacted.value(url) })), ahead: 0 },
  SQLite: { env: Effect.succeed({ STORAGE: "sqlite" }), ahead: 20_000 },
  memory: { env: Effect.succeed({ STORAGE: "memory" }), ahead: 20_000 }
}

for (const [name, { ahead, env }] of Object.entries(storages)) {
  live(
    `a scene fires each second while the clock of a server on ${name} jumps`,
    Effect.gen(function*() {
      const storage = yield* env
      const from = Date.now() + ahead
      const server = yield* start(
        { DATA_DIR: yield* temporaryDirectory, ...storage },
        ["--import", fileURLToPath(new URL("fixtures/clock-jumps.mjs", import.meta.url))]
      )
      const call = (method: string, path: string, body?: object) =>
        Effect.map(callTo(server.http, method, path, { key: ownerKey, body }), ({ body }) => body.data)
      const { id, created_at } = yield* call("POST", "/rule-engine/scenes", {
        name: "Each second",
        status: "enable",
        triggers: [{ URI: "trigger/cron", params: { cron: "* * * * * *" } }],
        conditions: [],
        actions: []
      })
      const executions = Effect.map(
        call("GET", `/rule-engine/scenes/${id}/executions?page_size=100`),
        ({ results }): ReadonlyArray<Execution> => results
      )
      const more = Effect.flatMap(
        executions,
        ({ length }) => eventually(executions, { until: (found) => found.length > length, interval: "50 millis" })
      )
      yield* more
      const jump = Effect.sync(() => process.kill(Number(server.child.pid), "SIGUSR2"))
      yield* jump
      yield* more
      yield* jump
      const found = yield* more
      const until = Date.now() + ahead
      for (const at of [(created_at + 1) * 1000, ...found.map(({ triggered_at }) => Date.parse(triggered_at))]) {
        assert.isAtLeast(at, from)
        assert.isAtMost(at, until + 1000)
      }
    })
  )
}
