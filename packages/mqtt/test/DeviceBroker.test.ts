import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import mqtt from "mqtt"
import { type AddressInfo, createServer } from "node:net"
import { DeviceBroker } from "../src/protocol/DeviceBroker.ts"
import { KeptSessions } from "../src/protocol/KeptSessions.ts"

it.effect("a session that is found again has the subscriptions that were granted, not those that were refused", () =>
  Effect.gen(function*() {
    const asked: Array<string> = []
    const broker = new DeviceBroker({
      sessions: new KeptSessions(
        { expiry: 1000, bytes: 10_000 },
        () => 0,
        () => ({ projectId: "project", session: { epoch: 1 } })
      ),
      preConnect: (_, __, done) => done(null, true),
      authenticate: (_, __, ___, done) => done(null, true),
      consume: (_, __, done) => done(),
      admits: (_, filter) => {
        asked.push(filter)
        return filter !== "refused"
      }
    })
    yield* Effect.promise(() => broker.listen())
    const server = createServer((socket) => void broker.handle(socket))
    yield* Effect.acquireRelease(
      Effect.promise(() => new Promise<void>((resume) => server.listen(0, "127.0.0.1", resume))),
      () =>
        Effect.callback<void>((resume) => {
          server.close()
          broker.close(() => resume(Effect.void))
        })
    )
    const connect = Effect.promise(() =>
      mqtt.connectAsync(`mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`, {
        clientId: "device",
        clean: false,
        reconnectPeriod: 0,
        resubscribe: false
      })
    )
    const first = yield* connect
    const end = (client: mqtt.MqttClient) => Effect.promise(() => client.endAsync())
    yield* Effect.promise(() => first.subscribeAsync(["granted", "refused", "also granted"]).catch(() => {}))
    yield* end(first)
    assert.deepStrictEqual(asked.splice(0), ["granted", "refused", "also granted"])
    yield* end(yield* connect)
    assert.deepStrictEqual(asked, ["granted", "also granted"])
  }))
