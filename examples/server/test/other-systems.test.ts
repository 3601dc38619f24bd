import * as PlatformNode from "@device-cloud/platform-node"
import { eventually } from "@device-cloud/testing"
import { callTo, ownerKey, productBody, signedQuery } from "@device-cloud/testing/http"
import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect, Redacted } from "effect"
import { fileURLToPath } from "node:url"
import * as NatsTestServer from "../../../packages/events-nats/test/NatsTestServer.ts"
import * as ClickHouseTestServer from "../../../packages/history-clickhouse/test/ClickHouseTestServer.ts"
import * as ServerProcess from "../src/ServerProcess.ts"

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url))

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
      const server = yield* ServerProcess.start({
        env: {
          STORAGE: "memory",
          HTTP_PORT: "0",
          MQTTS_PORT: "0",
          ADMIN_KEY: ownerKey,
          ALLOW_PLAIN_HTTP: "true",
          DATA_DIR: nats.directory,
          NATS_URL: nats.url,
          CLICKHOUSE_URL: Redacted.value(clickHouse.url)
        },
        nodeOptions: ["--conditions=device-cloud-source", "--import", "tsx"],
        main
      })
      const call = (method: string, path: string, body?: object) =>
        Effect.map(callTo(server.http, method, path, { body }), ({ body }) => body.data)
      const { product_info: { product_key } } = yield* call("POST", "/products", productBody)
      const device = yield* call("POST", `/products/${product_key}/things`, {})
      const query = new URLSearchParams(yield* signedQuery(device, "PostProperty"))
      yield* callTo(server.http, "POST", `/thing-uplink?${query}`, { key: null, body: { id: 1, params: { power: 1 } } })

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
      assert.strictEqual(message!.subject, `device-cloud.default.property.${product_key}.${device.device_name}`)
      assert.deepInclude(message!.json<object>(), { type: "property", device_id: device.device_id })

      const { results } = yield* eventually(call("GET", `/things/${device.device_id}/properties/power/history`), {
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
