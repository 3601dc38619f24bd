/**
 * Nothing is missed and nothing is out of order, whoever is killed: devices report
 * to two servers, three consumers share a subscription, and one process after the
 * other gets `kill -9`: each of them with `npm run fuzz`, a consumer and a server otherwise.
 */
import { eventually } from "@device-cloud/testing"
import { callTo, type DeviceTriple, ownerKey, productBody, signedQuery } from "@device-cloud/testing/http"
import { NodeServices } from "@effect/platform-node"
import * as PlatformNode from "@device-cloud/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { newDatabase, share } from "../../../vitest.storages.ts"
import { start, temporaryDirectory } from "./TestServer.ts"

const patient = { timeout: "40 seconds" } as const

const devices = 12
/** Milliseconds between two kills. */
const pause = 900
/** Who gets `kill -9`, one after the other. */
const kills = [
  ["consumer", 0],
  ["server", 0],
  ["consumer", 1],
  ["consumer", 2],
  ["server", 1],
  ["consumer", 0],
  ["consumer", 1],
  ["server", 0],
  ["consumer", 2],
  ["server", 1]
] as const

interface Delivery {
  readonly id: string
  readonly device: string
  readonly n: number
  /** Unix milliseconds. */
  readonly at: number
}

/** A server that comes back at the same address after a kill. */
const startServer = Effect.fnUntraced(function*(env: Readonly<Record<string, string>>) {
  let server = yield* start(env)
  const { http } = server
  return {
    http,
    killAndRestart: Effect.gen(function*() {
      yield* Effect.ignore(server.child.kill({ killSignal: "SIGKILL" }))
      server = yield* start({ ...env, HTTP_PORT: new URL(http).port })
    })
  }
})

/** A consumer that comes back, under its name or another one. */
const startConsumer = Effect.fnUntraced(function*(
  path: string,
  name: string,
  servers: ReadonlyArray<string>,
  deliveries: Array<Delivery>
) {
  const start = (worker: string): ChildProcess => {
    const child = spawn(
      process.execPath,
      [fileURLToPath(new URL("fixtures/consumer.mjs", import.meta.url)), path, worker, ownerKey, ...servers],
      { stdio: ["ignore", "pipe", "inherit"] }
    )
    createInterface(child.stdout!).on("line", (line) => deliveries.push(JSON.parse(line)))
    return child
  }
  let child = start(name)
  yield* Effect.addFinalizer(() => Effect.sync(() => child.kill("SIGKILL")))
  return {
    killAndRestart: (worker: string) =>
      Effect.sync(() => {
        child.kill("SIGKILL")
        child = start(worker)
      })
  }
})

/** Reports 1, 2, 3 … to one server or another, each until it is acknowledged. Returns how many were. */
const report = Effect.fnUntraced(
  function*(device: DeviceTriple, servers: ReadonlyArray<string>, isOver: () => boolean) {
    const query = new URLSearchParams(yield* signedQuery(device, "PostProperty")).toString()
    let n = 0
    let turn = 0
    while (!isOver()) {
      const body = JSON.stringify({ id: "1", version: "1.0", params: { n: n + 1 } })
      const isAcknowledged = yield* Effect.promise(async () => {
        try {
          const response = await fetch(`${servers[turn % servers.length]}/openapi/v1/thing-uplink?${query}`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body,
            signal: AbortSignal.timeout(5000)
          })
          return response.status === 200 && ((await response.json()) as { readonly code: number }).code === 0
        } catch {
          return false
        }
      })
      if (isAcknowledged) n++
      else turn++
      yield* Effect.sleep(isAcknowledged ? 10 : 50)
    }
    return n
  }
)

/** What is wrong with the deliveries of one device of which `count` reports were acknowledged. */
const complaints = (deliveries: ReadonlyArray<Delivery>, count: number): ReadonlyArray<string> => {
  const found: Array<string> = []
  let last = 0
  for (const { n } of deliveries.toSorted((a, b) => a.at - b.at)) {
    if (n > last + 1) found.push(`${n} came before ${last + 1}`)
    last = Math.max(last, n)
  }
  if (last < count) found.push(`${last + 1} to ${count} did not come`)
  return found
}

it.live(
  "every event is delivered, in order for its device, while consumers and servers are killed",
  () =>
    Effect.gen(function*() {
      const url = Redacted.value(yield* newDatabase)
      const env = { DATABASE_URL: url, SECRETS_KEY: `${"s".repeat(42)}A=` }
      const servers = yield* Effect.all(
        [1, 2].map(() => Effect.flatMap(temporaryDirectory, (DATA_DIR) => startServer({ ...env, DATA_DIR }))),
        { concurrency: "unbounded" }
      )
      const urls = servers.map(({ http }) => http)
      const call = (method: string, path: string, body?: object) =>
        Effect.map(callTo(urls[0]!, method, path, { body }), ({ body }) => body.data)
      const { product_info: { product_key } } = yield* call("POST", "/products", {
        ...productBody,
        validate_type: "none"
      })
      const triples = yield* Effect.forEach(
        Array.from({ length: devices }),
        () => call("POST", `/products/${product_key}/things`)
      )
      const { subscription_id } = yield* call("POST", "/subscriptions", {
        name: "Drill",
        filter: { types: ["property"], product_keys: [product_key] }
      })

      const deliveries: Array<Delivery> = []
      const consumers = yield* Effect.forEach(
        [0, 1, 2],
        (i) => startConsumer(`/subscriptions/${subscription_id}`, `consumer-${i}`, urls, deliveries)
      )
      let isOver = false
      const reports = yield* Effect.forkScoped(Effect.forEach(
        triples,
        (device: DeviceTriple, i) =>
          report({ ...device, product_key }, i % 2 === 0 ? urls : urls.toReversed(), () => isOver),
        { concurrency: "unbounded" }
      ))
      yield* eventually(Effect.sync(() => deliveries.length), { ...patient, until: (count) => count > 0 })
      for (const [step, [kind, i]] of (share === 1 ? kills : kills.slice(0, 2)).entries()) {
        const before = deliveries.length
        yield* Effect.sleep(pause)
        yield* eventually(Effect.sync(() => deliveries.length), { ...patient, until: (count) => count > before })
        if (kind === "server") yield* Effect.forkScoped(servers[i]!.killAndRestart)
        // Those that come back under another name wait until the lease of the first one ends.
        else yield* consumers[i]!.killAndRestart(step < 4 ? `consumer-${i}-again` : `consumer-${i}`)
      }
      isOver = true
      const counts = yield* Fiber.join(reports)
      const wrong = Effect.sync(() =>
        triples.flatMap(({ device_id }, i) =>
          complaints(deliveries.filter(({ device }) => device === device_id), counts[i]!).map((text) =>
            `${device_id}: ${text}`
          )
        )
      )
      const left = yield* eventually(wrong, { ...patient, until: ({ length }) => length === 0 }).pipe(
        Effect.catchCause(() => wrong)
      )
      const ids = new Set(deliveries.map(({ id }) => id))
      const summary = `${ids.size} events, ${deliveries.length - ids.size} deliveries again`
      assert.deepStrictEqual(left, [], summary)
      assert.isAbove(Math.min(...counts), 0)
    }).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(NodeServices.layer, PlatformNode.layer))),
  120_000
)
