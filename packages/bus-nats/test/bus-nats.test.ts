import * as BusNats from "@device-cloud/bus-nats"
import { NodeBus } from "@device-cloud/core"
import { NodeBusContract } from "@device-cloud/testing/contracts"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import * as NatsTestServer from "../../events-nats/test/NatsTestServer.ts"

const nodeOn = (url: string) =>
  Effect.map(Layer.build(Layer.fresh(BusNats.layer({ url }))), (node) => Context.get(node, NodeBus))

describe.skipIf(!NatsTestServer.isInstalled)(NatsTestServer.named("the bus on NATS"), () => {
  NodeBusContract.suite(
    "NATS",
    Effect.gen(function*() {
      const server = yield* NatsTestServer.make()
      yield* server.start
      return {
        node: nodeOn(server.url),
        breakConnections: Effect.andThen(server.kill, server.start)
      }
    })
  )

  it.live("does not wait for a server that is not there, and says that it cannot publish", () =>
    Effect.gen(function*() {
      const server = yield* NatsTestServer.make()
      const bus = yield* nodeOn(server.url)
      const error = yield* Effect.flip(bus.publish([{ channel: "contract", payload: "" }]))
      assert.deepInclude(error, { _tag: "StoreError", operation: "NodeBus.publish", retryable: true })
    }).pipe(Effect.scoped))
})
