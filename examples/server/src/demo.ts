/**
 * `npm run demo`: plays the life of one device against its own server and explains
 * each step. Fails if a step has another outcome than expected.
 */
import { ServerProcess } from "@device-cloud/server"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, Queue, Schedule, Schema } from "effect"
import mqtt from "mqtt"
import assert from "node:assert/strict"
import { createHmac } from "node:crypto"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** The body of a response of the management API. */
interface Envelope {
  readonly code: number
  readonly message: string
  // oxlint-disable-next-line typescript/no-explicit-any -- the demonstration looks into whatever comes back
  readonly data?: any
}

interface Triple {
  readonly product_key: string
  readonly device_name: string
  readonly device_secret: string
}

class Unexpected extends Schema.TaggedError<Unexpected>()("Unexpected", { message: Schema.String }) {}

let stepNumber = 0
const step = (title: string, explanation: string) =>
  Console.log(`\n${++stepNumber}. ${title}\n${explanation.replaceAll(/^/gm, "   ")}`)

const show = (label: string, value: unknown) => Console.log(`   ${label}  ${JSON.stringify(value)}`)

const managementApi = (server: string, key: string) =>
  Effect.fnUntraced(function*(method: string, path: string, body?: object) {
    const envelope = yield* Effect.promise(async () => {
      const response = await fetch(`${server}/openapi/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        ...body === undefined ? {} : { body: JSON.stringify(body) }
      })
      return await response.json() as Envelope
    })
    yield* Console.log(`   ${method} ${path}${body === undefined ? "" : ` ${JSON.stringify(body)}`}`)
    if (envelope.code !== 0) return yield* new Unexpected({ message: `${method} ${path}: ${JSON.stringify(envelope)}` })
    return envelope.data
  })

/** Returns what a device sends in its MQTT CONNECT. The password is the signature. */
const credentials = ({ device_name, device_secret, product_key }: Triple, method: "md5" | "sha1" | "sha256") => {
  const clientId = "kitchen-1"
  const signed = `clientId${clientId}deviceName${device_name}productKey${product_key}`
  return {
    clientId: `${clientId}|signmethod=hmac${method},authType=1|`,
    username: `${device_name}&${product_key}`,
    password: createHmac(method, device_secret).update(signed).digest("hex")
  }
}

/** Connects over TLS. Returns the client, or the return code with which the server refuses. */
const connect = (url: string, options: mqtt.IClientOptions) =>
  Effect.acquireRelease(
    Effect.callback<mqtt.MqttClient | number>((resume) => {
      const client = mqtt.connect(url, { ...options, reconnectPeriod: 0 })
      client.once("connect", () => resume(Effect.succeed(client)))
      client.on("error", (error) => resume(Effect.succeed("code" in error ? Number(error.code) : Number.NaN)))
    }),
    (client) => Effect.sync(() => typeof client === "number" ? undefined : void client.end(true))
  )

const play = Effect.fnUntraced(function*(dataDir: string) {
  yield* step(
    "Start the server",
    "With the PostgreSQL that comes with it, on free ports, in a directory of its own.\n" +
      "It makes a certificate for MQTT over TLS and the first access key, and says where it can be reached."
  )
  const server = yield* ServerProcess.start({
    env: { DATA_DIR: dataDir, HTTP_PORT: "0", MQTTS_PORT: "0" }
  })
  yield* show("management API", server.http)
  yield* show("devices connect to", server.mqtts)
  const call = managementApi(server.http, server.adminKey!)

  yield* step("Create a product", "A product is a kind of device. It says how its devices connect and what they speak.")
  const { product_info } = yield* call("POST", "/products", {
    name: "Thermostat",
    node_type: "direct",
    network_type: "wifi",
    validate_type: "weak",
    data_format: "json",
    auth_type: "secret"
  })
  yield* show("its key is", product_info.product_key)
  const product = `/products/${product_info.product_key}`
  yield* call("PUT", product, { name: "Thermostat II", dynamic_register: false, photo_url: "" })
  yield* call("PUT", `${product}/status`, { status: "released" })
  assert.equal((yield* call("GET", product)).product_info.name, "Thermostat II")
  const products = yield* call("GET", "/products?page=1&page_size=10")
  assert.deepEqual([products.total, products.results[0].status], [1, "released"])

  yield* step(
    "Say what its devices can do",
    "The thing model: properties, events, services. What devices report and are asked is checked against it."
  )
  const element = {
    id: "temperature",
    name: "Temperature",
    accessMode: "rw",
    dataType: { type: "float", min: 5, max: 30, unit: "°C" }
  }
  yield* call("POST", `${product}/thing-model-element`, { type: "property", element })
  const { thing_model } = yield* call("GET", `${product}/thing-model?model_type=tsl`)
  assert.equal(thing_model.properties[0].identifier, "temperature")

  yield* step(
    "Create a device",
    "It gets a triple that goes into its firmware: product key, device name, and a secret that never leaves it."
  )
  const triple: Triple & { readonly device_id: string } = yield* call("POST", `${product}/things`, {
    nickname: "Kitchen"
  })
  yield* show("the triple is", [triple.product_key, triple.device_name, triple.device_secret])
  const thing = `/things/${triple.device_id}`
  const { device_info } = yield* call("GET", `${thing}/detail`)
  assert.deepEqual([device_info.nickname, device_info.status], ["Kitchen", "unactive"])
  const byName = yield* call("GET", `${product}/device-names/${triple.device_name}/detail`)
  assert.equal(byName.device_info.device_id, triple.device_id)

  yield* step(
    "The device connects",
    "Over TLS, to an authority that it knows. It signs with its secret; the signature is its password.\n" +
      "A wrong signature is refused with MQTT's return code 4."
  )
  const ca = yield* Effect.promise(() => readFile(join(dataDir, "tls", "ca.pem")))
  assert.equal(yield* connect(server.mqtts, { ...credentials(triple, "sha1"), password: "wrong", ca }), 4)
  for (const method of ["md5", "sha1"] as const) {
    const client = yield* connect(server.mqtts, { ...credentials(triple, method), ca })
    assert.notEqual(typeof client, "number", `hmac${method}`)
  }
  const client = yield* connect(server.mqtts, { ...credentials(triple, "sha256"), ca })
  if (typeof client === "number") return yield* new Unexpected({ message: `refused with ${client}` })
  yield* show("the password was", credentials(triple, "sha256").password)
  const { status } = yield* call("GET", `${thing}/status`)
  assert.equal(status, "online")
  yield* show("status is now", status)

  yield* step(
    "The device reports a property",
    "A JSON message on its own topic. The answer comes when the value is stored, not before."
  )
  const received = yield* Queue.unbounded<
    { readonly topic: string; readonly message: { readonly code?: number; readonly id?: string } }
  >()
  client.on(
    "message",
    (topic, payload) => Queue.offerUnsafe(received, { topic, message: JSON.parse(payload.toString()) })
  )
  const topic = `/sys/${triple.product_key}/${triple.device_name}/thing/event/property/post`
  const post = { id: "1", version: "1.0", method: "thing.event.property.post", params: { temperature: 21.5 } }
  yield* show("publishes", post)
  client.publish(topic, JSON.stringify(post), { qos: 1 })
  const reply = yield* Queue.take(received)
  yield* show("gets", reply.message)
  assert.deepEqual([reply.topic, reply.message.code], [`${topic}_reply`, 200])

  yield* step("The application reads it", "The latest values, and the shadow: values with their times, and the status.")
  const { properties } = yield* call("GET", `${thing}/properties`)
  assert.deepEqual(properties, { temperature: 21.5 })
  yield* show("properties are", properties)
  const { thing_shadow } = yield* call("GET", `${thing}/shadow`)
  assert.deepEqual(thing_shadow.state.reported, { temperature: 21.5 })
  yield* show("the shadow is", thing_shadow)
  for (const filter of [`product_key=${triple.product_key}`, "status=online", "enabled_status=enable", "batch_id=0"]) {
    assert.equal((yield* call("GET", `/things?${filter}`)).results[0].device_id, triple.device_id)
  }

  yield* step(
    "The application sets a property",
    "The call is stored, delivered, confirmed, answered; were the device away, it would wait."
  )
  const { message_id } = yield* call("POST", `${thing}/properties`, { params: { temperature: 19 } })
  const command = yield* Queue.take(received)
  yield* show("the device gets", command.message)
  assert.equal(command.message.id, message_id)
  client.publish(`${command.topic}_reply`, JSON.stringify({ id: message_id, code: 200, data: {} }), { qos: 1 })
  client.publish(topic, JSON.stringify({ ...post, params: { temperature: 19 } }), { qos: 1 })
  yield* Queue.take(received)
  const message = yield* call("GET", `${thing}/messages/${message_id}`)
  yield* show("the call has", message.state)
  assert.equal(message.state, "succeeded")
  const history = yield* call("GET", `${thing}/properties/temperature/history`)
  yield* show("the history is", history.results)
  assert.deepEqual(history.results.map(({ value }: { readonly value: number }) => value), [19, 21.5])

  yield* step("The device is disabled", "It is told so, its connection ends, and it is refused with return code 5.")
  yield* call("PUT", `${thing}/status`, { action: "disble" })
  const farewell = yield* Queue.take(received)
  yield* show("it gets", farewell.message)
  assert.equal(yield* connect(server.mqtts, { ...credentials(triple, "sha1"), ca }), 5)
  yield* call("PUT", `${thing}/status`, { action: "enable" })

  yield* step("The device disconnects", "The status says so.")
  const again = yield* connect(server.mqtts, { ...credentials(triple, "sha1"), ca })
  if (typeof again === "number") return yield* new Unexpected({ message: `refused with ${again}` })
  again.end()
  yield* Effect.repeat(call("GET", `${thing}/status`), {
    until: ({ status }) => status === "offline",
    schedule: Schedule.spaced("50 millis")
  }).pipe(Effect.timeout("10 seconds"))

  yield* step("Clean up", "A product goes when it has no device left. The server is told to stop.")
  yield* call("DELETE", thing)
  yield* call("DELETE", product)
})

const temporaryDirectory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-demo-"))),
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
)

temporaryDirectory.pipe(
  // The server stops before its directory is deleted.
  Effect.flatMap((directory) => Effect.scoped(play(directory))),
  Effect.scoped,
  Effect.andThen(Console.log("\nThat was the life of one device. `npm start` runs the same server for you.")),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
