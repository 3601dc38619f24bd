/**
 * Devices at a real RabbitMQ in front of two servers, of which one gets `kill -9`.
 */
import * as PlatformNode from "@device-cloud/platform-node"
import { eventually } from "@device-cloud/testing"
import { callTo, ownerKey, productBody } from "@device-cloud/testing/http"
import { MqttDevice } from "@device-cloud/testing/mqtt"
import { NodeServices } from "@effect/platform-node"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Redacted } from "effect"
import { freePort } from "../../../vitest.ports.ts"
import { newDatabase } from "../../../vitest.storages.ts"
import * as RabbitTestServer from "../../../packages/mqtt-bridge/test/RabbitTestServer.ts"
import { start, temporaryDirectory } from "./TestServer.ts"

const hooksKey = "h".repeat(32)
const count = 12
/** Reports of a device during the load; the kill comes after the first of them. */
const reports = 60
/** Stands for the quality of service of a subscription that was refused. */
const refusedQos = 128
const patient = { timeout: "40 seconds" } as const

interface Created {
  readonly product_key: MqttDevice.DeviceTriple["productKey"]
  readonly device_id: string
  readonly device_name: MqttDevice.DeviceTriple["deviceName"]
  readonly device_secret: MqttDevice.DeviceTriple["deviceSecret"]
}

interface Traced {
  readonly kind: string
  readonly topic: string
  readonly transport: string
}

interface Sample {
  readonly value: number
}

/** The status events of all devices from now on. */
const statusEvents = Effect.fnUntraced(function*(http: string) {
  const events: Array<{ readonly device_id: string; readonly status: string }> = []
  const stop = yield* Effect.acquireRelease(
    Effect.sync(() => new AbortController()),
    (controller) => Effect.sync(() => controller.abort())
  )
  const response = yield* Effect.promise(() =>
    fetch(`${http}/openapi/v1/events?type=status`, {
      headers: { authorization: `Bearer ${ownerKey}` },
      signal: stop.signal
    })
  )
  yield* Effect.ignore(Effect.tryPromise(async () => {
    let text = ""
    for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
      const lines = (text + part).split("\n")
      text = lines.pop()!
      for (const line of lines) if (line.startsWith("data: {\"")) events.push(JSON.parse(line.slice(6)))
    }
  })).pipe(Effect.forkScoped)
  return events
})

it.live.skipIf(!RabbitTestServer.isInstalled)(
  RabbitTestServer.named(
    "devices at a broker in front of two servers lose nothing that was acknowledged when one is killed"
  ),
  () =>
    Effect.gen(function*() {
      const directory = yield* temporaryDirectory
      const databaseUrl = yield* newDatabase
      const [hooksOfA, hooksOfB] = yield* Effect.all([freePort, freePort])
      const broker = yield* RabbitTestServer.start(`http://127.0.0.1:${hooksOfB}/mqtt-bridge/${hooksKey}`)
      const startServer = (hooksPort: number) =>
        start({
          SECRETS_KEY: Buffer.alloc(32, 7).toString("base64"),
          DATABASE_URL: Redacted.value(databaseUrl),
          DATA_DIR: directory,
          MQTT_BRIDGE_URL: broker.amqpUrl,
          MQTT_BRIDGE_DEVICES_URL: broker.mqttUrl,
          MQTT_BRIDGE_HOOKS_PORT: String(hooksPort),
          MQTT_BRIDGE_HOOKS_KEY: hooksKey
        })
      const [a, b] = yield* Effect.all([startServer(hooksOfA), startServer(hooksOfB), broker.ready], {
        concurrency: "unbounded"
      })
      // Both carry devices, and have divided the eight shares.
      const sharesOf = ({ http }: typeof a) =>
        Effect.promise(async () => {
          const metrics = await (await fetch(`${http}/metrics`)).text()
          return /^device_cloud_mqtt_bridge_shares(?:\{.*\})? (\d+)$/m.exec(metrics)?.[1]
        })
      yield* Effect.forEach([a, b], (server) => eventually(sharesOf(server), { until: (n) => n === "4", ...patient }))
      const call = (method: string, path: string, body?: object) =>
        Effect.map(callTo(b.http, method, path, body === undefined ? {} : { body }), ({ body }) => body.data)
      const { product_info: { product_key } } = yield* call("POST", "/products", productBody)
      const devices = yield* Effect.forEach(
        Array.from({ length: count }),
        (): Effect.Effect<Created> => call("POST", `/products/${product_key}/things`, {}),
        { concurrency: 4 }
      )
      // Has a device of its own: RabbitMQ removes the queue of a connection that ends, and a later one of its client loses it.
      const stranger: Created = yield* call("POST", `/products/${product_key}/things`, {})
      const events = yield* statusEvents(b.http)

      const endpoint = { url: broker.mqttUrl }
      const connect = (each: Created, options: MqttDevice.ConnectOptions = {}) => {
        const triple = { productKey: each.product_key, deviceName: each.device_name, deviceSecret: each.device_secret }
        return MqttDevice.connectTo(endpoint, triple, {
          clientId: `${triple.productKey}.${triple.deviceName}`,
          signMethod: "hmacsha256",
          ...options
        })
      }
      const refusal = (each: Created, options: MqttDevice.ConnectOptions) =>
        Effect.map(Effect.flip(connect(each, options)), String)

      // Wrong signatures, and client ids of others.
      const [first, second] = devices as [Created, Created, ...ReadonlyArray<Created>]
      assert.match(yield* refusal(stranger, { password: "0".repeat(64) }), /refused/)
      assert.match(
        yield* refusal(stranger, { clientId: `${product_key}.${second.device_name}` }),
        /refused/
      )

      // Nobody publishes or subscribes on the topics of others.
      const foreign = `/sys/${product_key}/${second.device_name}/thing/event/property/post`
      const intruder = yield* connect(stranger)
      yield* Effect.forkChild(intruder.publish(foreign, JSON.stringify({ id: "1", params: { n: 666 } }), 1))
      yield* intruder.closed
      const listener = yield* connect(stranger)
      const granted = yield* Effect.raceFirst(listener.subscribe([foreign]), Effect.as(listener.closed, [refusedQos]))
      assert.deepStrictEqual(granted, [refusedQos])

      const clients = yield* Effect.forEach(devices, (device) => connect(device), { concurrency: 4 })
      yield* Effect.forEach(
        clients,
        (client) => client.subscribe([client.topic("thing/#")]),
        { concurrency: 4, discard: true }
      )

      // Reports are stored, and answered.
      yield* Effect.forEach(clients, (client) =>
        Effect.map(
          client.request(client.topic("thing/event/property/post"), { n: 0 }),
          ({ code }) => assert.strictEqual(code, 200)
        ), { concurrency: 4, discard: true })
      const status = (device: Created) =>
        Effect.map(call("GET", `/things/${device.device_id}/status`), (data) => JSON.stringify(data))
      yield* Effect.forEach(devices, (device) =>
        eventually(status(device), { until: (text) => text.includes("\"online\""), ...patient }))

      // A traced device: what it says and hears next is in its trace, from whichever server it is.
      yield* call("PUT", `/things/${first.device_id}/trace`, { minutes: 10 })

      // Commands through either server are delivered, and answered.
      const set = Effect.fnUntraced(
        function*(http: string, client: typeof clients[number], deviceId: string, n: number) {
          const posted = yield* callTo(http, "POST", `/things/${deviceId}/properties`, { body: { params: { n } } })
          assert.strictEqual(posted.body.code, 0, posted.body.message)
          const { id, params } = yield* client.takeFrom(client.topic("thing/service/property/set"))
          assert.deepStrictEqual(params, { n })
          yield* client.say("thing/service/property/set_reply", { id, code: 200, data: {} })
          yield* eventually(call("GET", `/things/${deviceId}/messages`), {
            until: ({ results }) =>
              results[0].state === "succeeded",
            ...patient
          })
        }
      )
      yield* Effect.forEach(
        clients,
        (client, i) => set(i % 2 === 0 ? a.http : b.http, client, devices[i]!.device_id, -1),
        { concurrency: 4, discard: true }
      )

      const trace = call("GET", `/things/${first.device_id}/trace?after=0`)
      const entryKinds = (entries: ReadonlyArray<Traced>) => entries.map(({ kind, topic }) => `${kind} ${topic}`)
      const asked = clients[0]!.topic("thing/service/property/set")
      const { results: traced } = yield* eventually(trace, {
        until: ({ results }) => entryKinds(results).includes(`uplink ${asked}_reply`),
        ...patient
      })
      assert.deepStrictEqual(entryKinds(traced), [`downlink ${asked}`, `uplink ${asked}_reply`])
      assert.deepStrictEqual(traced.map(({ transport }: Traced) => transport), ["mqtt-bridge", "mqtt-bridge"])

      // One server is killed while all devices report.
      const began = Date.now()
      const load = yield* Effect.forkChild(Effect.forEach(
        clients,
        Effect.fnUntraced(function*(client) {
          for (let n = 1; n <= reports; n++) {
            yield* client.publish(
              client.topic("thing/event/property/post"),
              // A report that has its own time is recognized when it comes again.
              JSON.stringify({ id: String(n), sys: { ack: 0 }, params: { n: { value: n, time: began + n } } }),
              1
            )
            yield* Effect.sleep(10)
          }
        }),
        { concurrency: "unbounded", discard: true }
      ))
      yield* Effect.sleep(300)
      yield* Effect.ignore(a.child.kill({ killSignal: "SIGKILL" }))
      yield* Fiber.join(load)
      for (const { device_id } of devices) {
        const history = call("GET", `/things/${device_id}/properties/n/history?limit=200`)
        const { results } = yield* eventually(history, {
          until: ({ results }) => results.some(({ value }: Sample) => value === reports),
          ...patient
        })
        const values = results.map(({ value }: Sample) => value).filter((n: number) => n > 0)
        assert.deepStrictEqual(values, Array.from({ length: reports }, (_, i) => reports - i))
      }

      // The server that is left has all devices, and nobody has missed them.
      yield* Effect.forEach(
        clients,
        (client, i) => set(b.http, client, devices[i]!.device_id, -2),
        { concurrency: 4, discard: true }
      )
      const later = devices.slice(1).map(({ device_id }) => device_id)
      assert.deepStrictEqual(
        events.filter(({ device_id }) => later.includes(device_id)).map(({ status }) => status),
        later.map(() => "online")
      )

      // A disabled device is cut off.
      yield* call("PUT", `/things/${first.device_id}/status`, { action: "disable" })
      yield* clients[0]!.takeFrom(clients[0]!.topic("thing/disable"))
      yield* clients[0]!.closed
    }).pipe(Effect.scoped, Effect.provide([NodeServices.layer, PlatformNode.layer])),
  90_000
)
