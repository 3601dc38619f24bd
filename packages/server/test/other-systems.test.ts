import * as PlatformNode from "@device-cloud/platform-node"
import { eventually } from "@device-cloud/testing"
import { callTo, type DeviceTriple, productBody, signedQuery } from "@device-cloud/testing/http"
import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect, Redacted } from "effect"
import { newDatabase } from "../../../vitest.storages.ts"
import * as NatsTestServer from "../../../packages/events-nats/test/NatsTestServer.ts"
import * as ClickHouseTestServer from "../../../packages/history-clickhouse/test/ClickHouseTestServer.ts"
import { start } from "./TestServer.ts"

/** Makes a product with a device. */
const createDevice = Effect.fnUntraced(function*(server: { readonly http: string }) {
  const post = (path: string, body: object) =>
    Effect.map(callTo(server.http, "POST", path, { body }), ({ body }) => body.data)
  const { product_info: { product_key } } = yield* post("/products", productBody)
  return yield* post(`/products/${product_key}/things`, {})
})

/** Reports a value as the device. */
const report = Effect.fnUntraced(function*(server: { readonly http: string }, device: DeviceTriple, power: number) {
  const query = new URLSearchParams(yield* signedQuery(device, "PostProperty"))
  const { body } = yield* callTo(server.http, "POST", `/thing-uplink?${query}`, {
    key: null,
    body: { id: 1, params: { power } }
  })
  assert.strictEqual(body.code, 0)
})

it.live.skipIf(!NatsTestServer.isInstalled || !ClickHouseTestServer.isInstalled)(
  NatsTestServer.named(
    ClickHouseTestServer.named("a report is on the NATS server and the ClickHouse server of the configuration")
  ),
  () =>
    Effect.gen(function*() {
      const nats = yield* NatsTestServer.make()
      yield* nats.start
      const clickHouse = yield* ClickHouseTestServer.make
      yield* clickHouse.start
      const server = yield* start({
        ALLOW_PLAIN_HTTP: "true",
        STORAGE: "memory",
        DATA_DIR: nats.directory,
        NATS_URL: nats.url,
        BUS_URL: nats.url,
        CLICKHOUSE_URL: Redacted.value(clickHouse.url)
      })
      const device = yield* createDevice(server)
      yield* report(server, device, 1)

      const connection = yield* Effect.acquireRelease(
        Effect.promise(() => connect({ servers: nats.url })),
        (connection) => Effect.promise(() => connection.close())
      )
      const manager = yield* Effect.promise(() => jetstreamManager(connection))
      yield* eventually(Effect.tryPromise(() => manager.streams.info("DEVICE_CLOUD")), {
        until: ({ state }) => state.messages > 0
      })
      const message = yield* Effect.promise(async () =>
        (await jetstream(connection).consumers.get("DEVICE_CLOUD", { filter_subjects: "device-cloud.*.property.>" }))
          .next()
      )
      assert.strictEqual(message!.subject, `device-cloud.default.property.${device.product_key}.${device.device_name}`)
      assert.deepInclude(message!.json<object>(), { type: "property", device_id: device.device_id })

      const told = connection.subscribe("device-cloud-bus.all", { max: 1 })
      yield* Effect.promise(() => connection.flush())
      yield* callTo(server.http, "PUT", `/things/${device.device_id}/status`, { body: { action: "disable" } })
      const { value: notice } = yield* Effect.promise(() => told[Symbol.asyncIterator]().next())
      assert.include(notice!.string(), device.device_name)

      const read = callTo(server.http, "GET", `/things/${device.device_id}/properties/power/history`)
      const { results } = yield* eventually(Effect.map(read, ({ body }) => body.data), {
        until: ({ results }) => results.length > 0
      })
      assert.deepStrictEqual(results.map(({ value }: { readonly value: number }) => value), [1])
      const stored = yield* Effect.promise(async () => {
        const { origin } = new URL(Redacted.value(clickHouse.url))
        const headers = { "x-clickhouse-user": "default", "x-clickhouse-key": "secret" }
        return (await fetch(origin, { method: "POST", headers, body: "SELECT value FROM device_history" })).text()
      })
      assert.strictEqual(stored, "1\n")
    }).pipe(Effect.scoped, Effect.provide([NodeServices.layer, PlatformNode.layer]))
)

it.live.skipIf(!NatsTestServer.isInstalled)(
  NatsTestServer.named(
    "another server goes on when the one is killed that publishes: every report is there once, in order"
  ),
  () =>
    Effect.gen(function*() {
      const nats = yield* NatsTestServer.make()
      yield* nats.start
      const databaseUrl = yield* newDatabase
      const startServer = start({
        ALLOW_PLAIN_HTTP: "true",
        DATABASE_URL: Redacted.value(databaseUrl),
        DATA_DIR: nats.directory,
        NATS_URL: nats.url
      })
      const publishing = yield* startServer
      const other = yield* startServer
      const device = yield* createDevice(other)
      const connection = yield* Effect.acquireRelease(
        Effect.promise(() => connect({ servers: nats.url })),
        (connection) => Effect.promise(() => connection.close())
      )
      const stored = Effect.promise(async () => {
        const found: Array<number> = []
        const consumer = await jetstream(connection).consumers.get("DEVICE_CLOUD", {
          filter_subjects: "device-cloud.*.property.>"
        })
        for await (const message of await consumer.fetch({ max_messages: 1000, expires: 1000 })) {
          found.push(
            message.json<{ readonly properties: { readonly power: { readonly value: number } } }>().properties.power
              .value
          )
        }
        return found
      })
      const numbers = Array.from({ length: 120 }, (_, i) => i)
      for (const number of numbers) {
        yield* report(other, device, number)
        if (number === 40) yield* Effect.ignore(publishing.child.kill({ killSignal: "SIGKILL" }))
      }
      const found = yield* eventually(stored, { until: ({ length }) => length >= numbers.length })
      assert.deepStrictEqual(found, numbers)
    }).pipe(Effect.scoped, Effect.provide([NodeServices.layer, PlatformNode.layer]))
)
