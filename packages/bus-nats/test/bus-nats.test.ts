import * as BusNats from "@device-cloud/bus-nats"
import { NodeBus } from "@device-cloud/core"
import { eventually } from "@device-cloud/testing"
import { NodeBusContract } from "@device-cloud/testing/contracts"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Effect, Exit, Fiber, Layer, Logger, Redacted } from "effect"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NatsTestServer from "../../events-nats/test/NatsTestServer.ts"

const nodeOn = (url: string, credentials?: BusNats.NatsBusOptions["credentials"]) =>
  Effect.map(Layer.build(Layer.fresh(BusNats.layer({ url, credentials }))), (node) => Context.get(node, NodeBus))

/** A server, and what publishes on it, which has worked once. */
const publishing = Effect.gen(function*() {
  const server = yield* NatsTestServer.make()
  yield* server.start
  const bus = yield* nodeOn(server.url)
  const publish = bus.publish([{ channel: "contract", payload: "" }])
  yield* eventually(Effect.exit(publish), { until: Exit.isSuccess })
  return { publish, server }
})

it.effect.each([undefined, ""])(
  "the URL %j is refused by name, which a program without types may give",
  (url) =>
    Effect.gen(function*() {
      const error = Cause.squash(yield* Effect.flip(Effect.sandbox(nodeOn(url as never))))
      assert.instanceOf(error, TypeError)
      assert.match((error as TypeError).message, /^url: expected /)
    })
)

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

  it.live("the log says once that the server is not there, and that it is back", () =>
    Effect.gen(function*() {
      const messages: Array<unknown> = []
      const server = yield* NatsTestServer.make()
      yield* nodeOn(server.url).pipe(
        Effect.provide(Logger.layer([Logger.make(({ message }) => void messages.push([message].flat()[0]))]))
      )
      // It tries again every second.
      yield* Effect.sleep("2500 millis")
      assert.deepStrictEqual(messages, ["Other nodes cannot be heard"])
      yield* server.start
      yield* eventually(Effect.sync(() => messages.at(-1)), {
        until: (message) => message === "Other nodes can be heard again"
      })
    }).pipe(Effect.scoped))

  it.live("the log says once what the server does not let the node do, and that it cannot hear or tell others", () =>
    Effect.gen(function*() {
      const config = `authorization { users: [
        { user: deaf, password: pw, permissions: { subscribe: { allow: ["x"] } } }
        { user: dumb, password: pw, permissions: { publish: { allow: ["x"] } } }
      ] }`
      const directory = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-nats-"))),
        (directory) => Effect.promise(() => rm(directory, { recursive: true }))
      )
      const file = join(directory, "nats.conf")
      yield* Effect.promise(() => writeFile(file, config))
      const server = yield* NatsTestServer.make("-c", file)
      yield* server.start
      for (const [user, what] of [["deaf", "Subscription"], ["dumb", "Publish"]] as const) {
        const reasons: Array<unknown> = []
        const bus = yield* nodeOn(server.url, { user, password: Redacted.make("pw") }).pipe(
          Effect.provide(Logger.layer([Logger.make(({ message }) => void reasons.push(String([message].flat()[1])))]))
        )
        // It tries again every second.
        yield* Effect.sleep("2500 millis")
        assert.deepStrictEqual(reasons, [
          `Disconnected: NATS refuses the node: Permissions Violation for ${what} to "device-cloud-bus.all"`
        ])
        const error = yield* Effect.flip(bus.publish([{ channel: "contract", payload: "" }]))
        assert.deepInclude(error, { _tag: "StoreError", operation: "NodeBus.publish", retryable: true })
      }
    }).pipe(Effect.scoped))

  it.live("says that it could not publish when the server dies before it has confirmed", () =>
    Effect.gen(function*() {
      const { publish, server } = yield* publishing
      const underWay = yield* Effect.forkScoped(Effect.flip(Effect.forever(publish)), { startImmediately: true })
      yield* server.kill
      assert.deepInclude(yield* Fiber.join(underWay), { _tag: "StoreError", retryable: true })
      yield* server.start
      yield* eventually(Effect.exit(publish), { until: Exit.isSuccess })
    }).pipe(Effect.scoped))

  it.live("waits two seconds for a server that says nothing, and then for none", () =>
    Effect.gen(function*() {
      const { publish, server } = yield* publishing
      yield* server.freeze
      // The server stops a moment after the signal, and may confirm something until then.
      const messageOf = Effect.map(Effect.eventually(Effect.flip(publish)), ({ cause }) => (cause as Error).message)
      assert.strictEqual(yield* messageOf, "NATS has not confirmed within 2 seconds")
      assert.strictEqual(yield* messageOf, "There is no connection to NATS")
      yield* server.kill
      yield* server.start
      yield* eventually(Effect.exit(publish), { until: Exit.isSuccess })
    }).pipe(Effect.scoped))
})
