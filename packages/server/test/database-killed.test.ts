import { eventually } from "@device-cloud/testing"
import { ownerKey } from "@device-cloud/testing/http"
import { MqttDevice } from "@device-cloud/testing/mqtt"
import { assert } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { once } from "node:events"
import { readFile } from "node:fs/promises"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { join } from "node:path"
import { newDatabase } from "../../../vitest.storages.ts"
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

/** The way to a database, which can be cut without a word to either side. */
const wayTo = Effect.fnUntraced(function*(database: URL) {
  const sockets = new Set<Socket>()
  let isCut = false
  const way = createServer((near) => {
    sockets.add(near.on("error", () => {}))
    if (isCut) return
    const far = connect(Number(database.port), database.hostname).on("error", () => {})
    sockets.add(far)
    near.pipe(far).pipe(near)
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => once(way.listen(0, "127.0.0.1"), "listening")),
    () =>
      Effect.sync(() => {
        way.close()
        for (const socket of sockets) socket.destroy()
      })
  )
  const url = new URL(database)
  url.hostname = "127.0.0.1"
  url.port = String((way.address() as AddressInfo).port)
  return {
    url: url.href,
    cut: Effect.sync(() => {
      isCut = true
      for (const socket of sockets) socket.unpipe().pause()
    })
  }
})

live(
  "is not ready while the database does not answer, and stops with code 0 all the same",
  Effect.gen(function*() {
    const database = yield* wayTo(new URL(Redacted.value(yield* newDatabase)))
    const server = yield* start({ DATABASE_URL: database.url, DATA_DIR: yield* temporaryDirectory })
    yield* createDevice(server.http)
    yield* database.cut
    yield* eventually(get(server, "/readyz"), { ...patient, until: ({ status }) => status === 503 })
    process.kill(server.child.pid, "SIGTERM")
    assert.strictEqual(yield* server.child.exitCode, 0)
    yield* eventually(server.output, { until: (output) => output.includes("The server stops without") })
  })
)
