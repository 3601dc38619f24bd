import { callTo, ownerKey, productBody, signedQuery } from "@device-cloud/testing/http"
import * as PlatformNode from "@device-cloud/platform-node"
import { eventually } from "@device-cloud/testing"
import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect } from "effect"
import { fileURLToPath } from "node:url"
import * as NatsTestServer from "../../../packages/events-nats/test/NatsTestServer.ts"
import * as ServerProcess from "../src/ServerProcess.ts"

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url))

it.live.skipIf(!NatsTestServer.isInstalled)(
  NatsTestServer.named("the server publishes what happens on the NATS server of its configuration"),
  () =>
    Effect.gen(function*() {
      const nats = yield* NatsTestServer.make()
      yield* nats.start
      const server = yield* ServerProcess.start({
        env: {
          STORAGE: "memory",
          HTTP_PORT: "0",
          MQTTS_PORT: "0",
          ADMIN_KEY: ownerKey,
          ALLOW_PLAIN_HTTP: "true",
          NATS_URL: nats.url,
          DATA_DIR: nats.directory
        },
        nodeOptions: ["--conditions=device-cloud-source", "--import", "tsx"],
        main
      })
      const post = (path: string, body: object) =>
        Effect.map(callTo(server.http, "POST", path, { body }), ({ body }) => body.data)
      const { product_info: { product_key } } = yield* post("/products", productBody)
      const device = yield* post(`/products/${product_key}/things`, {})
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
    }).pipe(Effect.scoped, Effect.provide([NodeServices.layer, PlatformNode.layer]))
)
