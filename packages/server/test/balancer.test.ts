import { eventually } from "@device-cloud/testing"
import { ownerKey } from "@device-cloud/testing/http"
import { MqttDevice } from "@device-cloud/testing/mqtt"
import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync, writeFileSync } from "node:fs"
import { Agent, request } from "node:http"
import { join } from "node:path"
import { environment, program } from "../../../vitest.installed.ts"
import { freePort } from "../../../vitest.ports.ts"
import { newDatabase } from "../../../vitest.storages.ts"
import { call, createDevices, start, temporaryDirectory } from "./TestServer.ts"

const haproxy = program("haproxy")

const patient = { timeout: "60 seconds" } as const

/** The configuration of the documentation, with these addresses in place of those. */
const configuration = (addresses: Readonly<Record<string, string>>): string => {
  const page = readFileSync(new URL("../../../docs/operations/rolling-restarts.md", import.meta.url), "utf8")
  const [, text] = /```haproxy .*\n([^]*?)```/.exec(page)!
  return Object.entries(addresses).reduce((text, [address, actual]) => text.replaceAll(address, actual), text!)
}

const runHaproxy = (file: string) =>
  Effect.acquireRelease(
    Effect.sync(() => spawn("haproxy", ["-db", "-f", file], { env: environment, stdio: "ignore" })),
    (child) =>
      Effect.promise(async () => {
        if (child.exitCode !== null) return
        const ended = once(child, "exit")
        child.kill("SIGKILL")
        await ended
      })
  )

/** Asks without end, and counts the requests and those that fail. */
const askWithoutEnd = Effect.fnUntraced(function*(url: string) {
  const counts = { requests: 0, failures: [] as Array<string> }
  const ask = Effect.promise(async () => {
    try {
      const response = await fetch(`${url}/openapi/v1/products`, { headers: { authorization: `Bearer ${ownerKey}` } })
      const text = await response.text()
      if (response.status !== 200) counts.failures.push(`${response.status} ${text}`)
    } catch (error) {
      counts.failures.push(String((error as Error).cause ?? error))
    }
    counts.requests++
  })
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(ask, Effect.sleep("5 millis"))))
  return counts
})

it.live.runIf(haproxy.isInstalled)(
  haproxy.named("behind HAProxy a server is replaced while devices and applications go on"),
  () =>
    Effect.gen(function*() {
      const dataDir = yield* temporaryDirectory
      const [http, mqtts, httpA, mqttsA, httpB, mqttsB] = yield* Effect.replicateEffect(freePort, 6)
      const url = Redacted.value(yield* newDatabase)
      const startServer = (httpPort: number | undefined, mqttsPort: number | undefined) =>
        start({
          DATA_DIR: dataDir,
          DATABASE_URL: url,
          DATABASE_CONNECTIONS: "3",
          HTTP_PORT: String(httpPort),
          MQTTS_PORT: String(mqttsPort),
          MQTT_PROXY_PROTOCOL: "true",
          TRUSTED_PROXIES: "127.0.0.1",
          DRAIN_SECONDS: "3",
          LOG_LEVEL: "Error"
        })
      const a = yield* startServer(httpA, mqttsA)
      const b = yield* startServer(httpB, mqttsB)
      const file = join(dataDir, "haproxy.cfg")
      writeFileSync(
        file,
        configuration({
          "10.0.0.10:80": `127.0.0.1:${http}`,
          "10.0.0.11:8080": `127.0.0.1:${httpA}`,
          "10.0.0.12:8080": `127.0.0.1:${httpB}`,
          "10.0.0.10:8883": `127.0.0.1:${mqtts}`,
          "10.0.0.11:8883 send-proxy-v2 port 8080": `127.0.0.1:${mqttsA} send-proxy-v2 port ${httpA}`,
          "10.0.0.12:8883 send-proxy-v2 port 8080": `127.0.0.1:${mqttsB} send-proxy-v2 port ${httpB}`
        })
      )
      yield* runHaproxy(file)
      const balancer = `http://127.0.0.1:${http}`
      yield* eventually(
        Effect.promise(() => fetch(`${balancer}/readyz`).then(({ status }) => status, () => 0)),
        { ...patient, until: (status) => status === 200 }
      )

      const devices = yield* createDevices(balancer, 8)
      const endpoint = { url: `mqtts://localhost:${mqtts}`, ca: readFileSync(join(dataDir, "tls", "ca.pem"), "utf8") }
      const told = devices.map((): Array<string> => [])
      const connected = yield* Effect.forEach(devices, (device, i) =>
        Effect.tap(
          MqttDevice.connectTo(endpoint, device, {
            // The last byte of the address is the place of the device.
            options: { reconnectPeriod: 100, localAddress: `127.0.0.${100 + i}` } as object
          }),
          ({ client }) =>
            Effect.sync(() =>
              client.on("message", (topic, payload) => {
                if (!topic.endsWith("/thing/service/property/set")) return
                const { id } = JSON.parse(payload.toString())
                told[i]!.push(id)
                client.publish(`${topic}_reply`, JSON.stringify({ id, code: 200, data: {} }), { qos: 1 })
              })
            )
        ))
      const connectionsOf = (port: number | undefined) =>
        Effect.promise(async () => {
          const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
          return Number(/^device_cloud_connections (\d+)$/m.exec(text)?.[1])
        })
      assert.deepStrictEqual([yield* connectionsOf(httpA), yield* connectionsOf(httpB)], [4, 4])
      for (const [i, { id }] of devices.entries()) {
        const { data } = yield* call(balancer, "GET", `/things/${id}/detail`)
        assert.strictEqual(data.device_info.ip, `127.0.0.${100 + i}`)
      }

      const counts = yield* Effect.all([askWithoutEnd(balancer), askWithoutEnd(balancer)])
      const ids = devices.map((): Array<string> => [])
      const command = Effect.gen(function*() {
        for (const [i, { id }] of devices.entries()) {
          const { data } = yield* call(balancer, "POST", `/things/${id}/properties`, { params: { n: ids[i]!.length } })
          ids[i]!.push(data.message_id)
        }
      })
      yield* command
      // A moment in which no server answers: requests wait.
      for (const { child } of [a, b]) process.kill(child.pid, "SIGSTOP")
      yield* Effect.sleep("1200 millis")
      for (const { child } of [a, b]) process.kill(child.pid, "SIGCONT")
      yield* Effect.sleep("500 millis")
      assert.deepStrictEqual(counts.map(({ failures }) => failures), [[], []])
      const stopped = yield* Effect.forkChild(a.child.kill({ killSignal: "SIGTERM" }))
      while (stopped.pollUnsafe() === undefined) yield* command
      assert.strictEqual(yield* a.child.exitCode, 0)
      yield* eventually(Effect.sync(() => connected.every(({ client }) => client.connected)), {
        ...patient,
        until: (all) => all
      })
      assert.strictEqual(yield* connectionsOf(httpB), 8)

      yield* startServer(httpA, mqttsA)
      yield* command
      yield* eventually(Effect.sync(() => told.every((some, i) => some.length >= ids[i]!.length)), {
        ...patient,
        until: (all) => all
      })
      assert.deepStrictEqual(told, ids)
      for (const { failures, requests } of counts) {
        assert.isAbove(requests, 50)
        assert.deepStrictEqual(failures, [])
      }
      // New devices go to the server that has fewest.
      const [another] = yield* createDevices(balancer, 1)
      yield* eventually(
        Effect.scoped(Effect.gen(function*() {
          yield* MqttDevice.connectTo(endpoint, another!)
          assert.strictEqual(yield* connectionsOf(httpA), 1)
        })),
        patient
      )
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  120_000
)

it.live("a server that drains says so, and ends at once at a second signal", () =>
  Effect.gen(function*() {
    const server = yield* start({ STORAGE: "memory", DATA_DIR: yield* temporaryDirectory, DRAIN_SECONDS: "60" })
    const response = yield* Effect.promise(() => fetch(`${server.http}/readyz`))
    assert.deepStrictEqual([response.status, response.headers.get("connection")], [200, "keep-alive"])
    process.kill(server.child.pid, "SIGTERM")
    const unready = yield* eventually(Effect.promise(() => fetch(`${server.http}/readyz`)), {
      ...patient,
      until: ({ status }) => status === 503
    })
    assert.strictEqual(unready.headers.get("connection"), "close")
    const expecting = Effect.callback<string | undefined>((resume) => {
      const headers = {
        expect: "100-continue",
        authorization: `Bearer ${ownerKey}`,
        "content-type": "application/json"
      }
      const options = { method: "POST", agent: new Agent({ keepAlive: true }), headers }
      request(
        `${server.http}/openapi/v1/products`,
        options,
        ({ headers }) => resume(Effect.succeed(headers.connection))
      )
        .end("{}")
    })
    assert.strictEqual(yield* expecting, "close")
    assert.strictEqual((yield* call(server.http, "GET", "/products")).code, 0)
    // One interrupt may come twice.
    yield* Effect.sleep("600 millis")
    process.kill(server.child.pid, "SIGTERM")
    assert.strictEqual(yield* server.child.exitCode, 1)
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
