/**
 * A server whose system clock is wrong and jumps behaves as if nothing had happened.
 */
import { EmbeddedPostgres } from "@device-cloud/postgres-embedded"
import { eventually } from "@device-cloud/testing"
import { callTo, ownerKey } from "@device-cloud/testing/http"
import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { execFileSync } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { beforeAll, inject } from "vitest"
import * as ServerProcess from "../src/ServerProcess.ts"

const folder = fileURLToPath(new URL("..", import.meta.url))

/** The server as it is shipped. */
beforeAll(() => {
  const require = createRequire(import.meta.url)
  const compiler = join(dirname(require.resolve("typescript/package.json")), "bin", "tsc")
  execFileSync(process.execPath, [compiler, "-b", folder], { stdio: "inherit" })
})

interface Execution {
  /** ISO 8601. */
  readonly triggered_at: string
}

it.live("a scene fires each second of the database's time while the clock of the server jumps", () =>
  Effect.gen(function*() {
    const directory = yield* Effect.acquireRelease(
      Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-clock-"))),
      (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
    )
    const url = yield* EmbeddedPostgres.createDatabase(Redacted.make(inject("postgresUrl")))
    const from = Date.now()
    const server = yield* ServerProcess.start({
      env: {
        HTTP_PORT: "0",
        MQTTS_PORT: "0",
        DATA_DIR: directory,
        ADMIN_KEY: ownerKey,
        DATABASE_URL: Redacted.value(url)
      },
      nodeOptions: ["--import", join(folder, "test", "fixtures", "clock-jumps.mjs")],
      main: join(folder, "dist", "main.js")
    })
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
    const until = Date.now()
    for (const at of [(created_at + 1) * 1000, ...found.map(({ triggered_at }) => Date.parse(triggered_at))]) {
      assert.isAtLeast(at, from)
      assert.isAtMost(at, until + 1000)
    }
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
