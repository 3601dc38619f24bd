import { eventually } from "@device-cloud/testing"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Redacted } from "effect"
import { existsSync } from "node:fs"
import { createServer, type RequestListener, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { newDatabase } from "../../../vitest.storages.ts"
import { mergeMetrics } from "../src/MergedMetrics.ts"
import * as WorkerOperations from "../src/WorkerOperations.ts"
import { call, connectObedient, createDevices, start, temporaryDirectory, workersOf } from "./TestServer.ts"

const patient = { timeout: "60 seconds" } as const

/** Two workers on a database of their own. */
const startWorkers = Effect.fnUntraced(function*(more: Readonly<Record<string, string>> = {}) {
  return yield* start({
    DATA_DIR: yield* temporaryDirectory,
    DATABASE_URL: Redacted.value(yield* newDatabase),
    DATABASE_CONNECTIONS: "3",
    WORKERS: "2",
    LOG_LEVEL: "Error",
    ...more
  })
})

/** Devices connected to each worker, by its number. */
const connectionsOf = (operations: string) =>
  Effect.promise(async () => {
    const text = await (await fetch(`${operations}/metrics`)).text()
    const samples = text.matchAll(/^device_cloud_connections\{worker="(\d+)"\} (\d+)$/gm)
    return Object.fromEntries([...samples].map(([, worker, count]) => [worker, Number(count)]))
  })

it.live.runIf(existsSync("/proc/self/task"))(
  "workers are one cloud: one is killed, its devices come back elsewhere and are told",
  () =>
    Effect.gen(function*() {
      const server = yield* startWorkers({ METRICS_PORT: "0" })
      const devices = yield* createDevices(server.http, 6)
      const connected = yield* Effect.forEach(devices, (device) => connectObedient(server.mqtt!, device))
      const before = yield* connectionsOf(server.operations!)
      assert.deepStrictEqual(Object.keys(before), ["1", "2"])
      assert.strictEqual(before["1"]! + before["2"]!, 6)
      assert.isAbove(Math.min(before["1"]!, before["2"]!), 0)

      const [victim] = workersOf(server.child.pid)
      let lost = 0
      for (const { client } of connected) client.once("close", () => lost++)
      process.kill(victim!, "SIGKILL")
      yield* eventually(Effect.sync(() => lost > 0 && connected.every(({ client }) => client.connected)), {
        ...patient,
        until: (back) => back
      })
      assert.isBelow(lost, 6)
      const ids = yield* Effect.forEach(devices, ({ id }, i) =>
        Effect.map(
          call(server.http, "POST", `/things/${id}/properties`, { params: { i } }),
          ({ data }) => data.message_id
        ))
      for (const [i, { id }] of devices.entries()) {
        yield* eventually(call(server.http, "GET", `/things/${id}/messages/${ids[i]}`), {
          ...patient,
          until: ({ data }) => data.state === "succeeded"
        })
      }
      assert.deepStrictEqual(connected.map(({ told }) => told), ids.map((id) => [id]))
      // The supervisor has started another one.
      yield* eventually(connectionsOf(server.operations!), {
        ...patient,
        until: (counts) => Object.keys(counts).length === 2
      })
      assert.include(yield* server.output, "it is started again")
      assert.strictEqual((yield* Effect.promise(() => fetch(`${server.operations}/readyz`))).status, 200)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  120_000
)

it.live.runIf(existsSync("/proc/self/task"))(
  "a connection does not stay open that is handed to a worker when it is killed",
  () =>
    Effect.gen(function*() {
      const server = yield* startWorkers()
      const [victim] = workersOf(server.child.pid)
      // It is handed a connection that it cannot confirm.
      process.kill(victim!, "SIGSTOP")
      yield* Effect.addFinalizer(() => Effect.ignore(Effect.try(() => process.kill(victim!, "SIGKILL"))))
      /** The status of the response, or "closed". */
      const request = Effect.promise(() =>
        fetch(`${server.http}/healthz`, { headers: { Connection: "close" } }).then(
          ({ status }) => status,
          () => "closed"
        )
      )
      const requests = yield* Effect.forEach(Array(4), () => Effect.forkChild(request))
      yield* eventually(Effect.sync(() => requests.filter((fiber) => fiber.pollUnsafe() !== undefined).length), {
        ...patient,
        until: (ended) => ended === 3
      })
      process.kill(victim!, "SIGKILL")
      const outcomes = yield* Fiber.joinAll(requests)
      assert.deepStrictEqual(outcomes.toSorted(), [200, 200, 200, "closed"])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  120_000
)

it.live.runIf(existsSync("/proc/self/task"))(
  "a worker stops that is told to as soon as it runs",
  () =>
    Effect.gen(function*() {
      const server = yield* startWorkers({ DRAIN_SECONDS: "0" })
      const [victim, other] = workersOf(server.child.pid)
      process.kill(victim!, "SIGKILL")
      yield* eventually(Effect.sync(() => workersOf(server.child.pid)), {
        ...patient,
        until: (workers) => workers.some((worker) => worker !== victim && worker !== other)
      })
      process.kill(server.child.pid, "SIGTERM")
      assert.strictEqual(yield* server.child.exitCode, 0)
      assert.notInclude(yield* server.output, "does not stop")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  120_000
)

it.live("workers need a database", () =>
  Effect.gen(function*() {
    const refused = yield* Effect.flip(start({ STORAGE: "memory", WORKERS: "2", DATA_DIR: yield* temporaryDirectory }))
    assert.include(refused.message, "WORKERS: workers share a database")
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

describe("operations of workers", () => {
  /** A worker whose operations respond so, behind a supervisor. Returns the URL of the supervisor. */
  const behindSupervisor = Effect.fnUntraced(function*(respond: RequestListener) {
    const server = yield* Effect.acquireRelease(
      Effect.callback<Server>((resume) => {
        const server = createServer(respond)
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) =>
        Effect.sync(() => {
          server.close()
          server.closeAllConnections()
        })
    )
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return yield* WorkerOperations.listen("127.0.0.1", 0, () => [{ number: 1, url }])
  })

  it.live("a request with a body takes nothing of the next one", () =>
    Effect.gen(function*() {
      const url = yield* behindSupervisor(({ method, url }, response) => response.end(`${method} ${url}`))
      for (const method of ["POST", "GET", "PUT", "GET"]) {
        const body = method === "GET" ? {} : { body: "0123456789" }
        const response = yield* Effect.promise(() => fetch(`${url}/readyz`, { method, ...body }))
        assert.strictEqual(yield* Effect.promise(() => response.text()), `${method} /readyz`)
      }
    }).pipe(Effect.scoped))

  it.live("metrics are those of all workers, also with a query", () =>
    Effect.gen(function*() {
      const url = yield* behindSupervisor((_, response) => response.end("# TYPE b gauge\nb 1\n"))
      for (const path of ["/metrics", "/metrics?name=b"]) {
        const response = yield* Effect.promise(() => fetch(url + path))
        assert.include(yield* Effect.promise(() => response.text()), "b{worker=\"1\"} 1")
      }
    }).pipe(Effect.scoped))

  it.live("a response is cut that a worker does not complete", () =>
    Effect.gen(function*() {
      const url = yield* behindSupervisor((_, response) => {
        response.writeHead(200, { "Content-Length": 100 })
        response.write("half", () => response.destroy())
      })
      const read = Effect.tryPromise(async () => await (await fetch(`${url}/docs`)).text())
      assert.isTrue(Exit.isFailure(yield* Effect.exit(read)))
    }).pipe(Effect.scoped))
})

it("metrics of workers are one text, with the worker of each sample", () => {
  const text = (count: number) =>
    `# HELP a_total Things\n# TYPE a_total counter\na_total{kind="x"} ${count}\n# TYPE b gauge\nb 1\n`
  assert.strictEqual(
    mergeMetrics([{ worker: 1, text: text(3) }, { worker: 2, text: text(4) }]),
    "# HELP a_total Things\n# TYPE a_total counter\na_total{kind=\"x\",worker=\"1\"} 3\na_total{kind=\"x\",worker=\"2\"} 4\n" +
      "\n# TYPE b gauge\nb{worker=\"1\"} 1\nb{worker=\"2\"} 1\n"
  )
})
