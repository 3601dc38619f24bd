import { eventually } from "@device-cloud/testing"
import { ownerKey } from "@device-cloud/testing/http"
import { MqttDevice } from "@device-cloud/testing/mqtt"
import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { newDatabase } from "../../../vitest.storages.ts"
import { wayTo } from "../../../vitest.ways.ts"
import {
  broker,
  call,
  counterOf,
  createDevice,
  get,
  live,
  patient,
  postWithoutEnd,
  start,
  startWith,
  temporaryDirectory,
  untilStatus
} from "./TestServer.ts"

live(
  "acknowledges nothing while the database is gone, and goes on when it is back",
  Effect.gen(function*() {
    const dataDir = yield* temporaryDirectory
    const server = yield* startWith({ DATA_DIR: dataDir, ADMIN_KEY: ownerKey })
    const device = yield* createDevice(server.http)
    const connected = yield* MqttDevice.connectTo(yield* broker(server, dataDir), device)
    const posts = yield* postWithoutEnd(connected)
    for (let round = 0; round < 2; round++) {
      yield* posts.progress(100)
      const pidFile = yield* Effect.promise(() => readFile(join(dataDir, "postgres", "data", "postmaster.pid"), "utf8"))
      process.kill(Number.parseInt(pidFile), "SIGKILL")
      yield* eventually(get(server, "/readyz"), { ...patient, until: ({ status }) => status === 503 })
      const unavailable = yield* call(server.http, "GET", "/products")
      assert.include([0, 50300], unavailable.code)
      assert.strictEqual((yield* get(server, "/healthz")).status, 200)
      yield* eventually(get(server, "/readyz"), { ...patient, until: ({ status }) => status === 200 })
      yield* posts.progress(100)
    }
    const acknowledged = yield* posts.acknowledged
    assert.isAtLeast(yield* counterOf(server, device.id), acknowledged)
    assert.strictEqual(connected.client.connected, true)
    yield* untilStatus(server, device.id, "online")
  })
)

live(
  "is not ready while the database does not answer, and stops with code 0 all the same",
  Effect.gen(function*() {
    const database = yield* wayTo(Redacted.value(yield* newDatabase))
    const server = yield* start({ DATABASE_URL: database.url, DATA_DIR: yield* temporaryDirectory })
    yield* createDevice(server.http)
    yield* database.cut
    yield* eventually(get(server, "/readyz"), { ...patient, until: ({ status }) => status === 503 })
    process.kill(server.child.pid, "SIGTERM")
    assert.strictEqual(yield* server.child.exitCode, 0)
    yield* eventually(server.output, { until: (output) => output.includes("The server stops without") })
  })
)
