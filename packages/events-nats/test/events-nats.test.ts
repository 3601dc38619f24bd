import * as EventsNats from "@device-cloud/events-nats"
import { defaultProjectId, type DomainEvent, FeedReaderStore, FeedStore } from "@device-cloud/core"
import { DevelopmentCertificate } from "@device-cloud/mqtt"
import * as StorageMemory from "@device-cloud/storage-memory"
import { eventually } from "@device-cloud/testing"
import { assert, describe, it } from "@effect/vitest"
import { jetstream, type JetStreamManager, jetstreamManager, type StreamConfig } from "@nats-io/jetstream"
import { connect, headers, nanos, type NatsConnection, nkeys } from "@nats-io/transport-node"
import { Cause, Effect, Exit, Layer, Logger, Redacted, Scope } from "effect"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { type AddressInfo, connect as connectSocket, createServer, type Server, type Socket } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NatsTestServer from "./NatsTestServer.ts"

const stores = StorageMemory.layer

const device = (deviceName: string) =>
  ({ deviceId: `id-${deviceName}`, productKey: "pk", deviceName, projectId: defaultProjectId }) as DomainEvent["device"]

const event = (number: number, deviceName = "d") =>
  ({
    _tag: "PropertiesReported",
    device: device(deviceName),
    at: number,
    properties: { n: { value: number, time: number } }
  }) as DomainEvent

const append = (...events: ReadonlyArray<DomainEvent>) => FeedStore.use((feed) => feed.append(events))

/** Feeds the server until the scope, which it returns, closes. */
const start = Effect.fnUntraced(function*(options: EventsNats.NatsOptions) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  yield* Layer.buildWithScope(Layer.fresh(EventsNats.layer(options)), scope)
  return scope
})

interface Stored {
  readonly subject: string
  readonly id: string
  readonly body: { readonly id: string; readonly time: number }
}

const connected = <A>(url: string, use: (connection: NatsConnection) => Promise<A>) =>
  Effect.acquireUseRelease(
    Effect.tryPromise(() => connect({ servers: url, reconnect: false })),
    (connection) => Effect.tryPromise(() => use(connection)),
    (connection) => Effect.promise(() => connection.close())
  )

const managing = <A>(url: string, use: (manager: JetStreamManager) => Promise<A>) =>
  connected(url, async (connection) => use(await jetstreamManager(connection)))

/** Waits until the stream has at least so many messages. */
const hasMessages = (url: string, count: number) =>
  eventually(managing(url, (manager) => manager.streams.info("DEVICE_CLOUD")), {
    until: ({ state }) => state.messages >= count
  })

/** What the stream has, in its order, when it has at least so many messages. */
const stored = Effect.fnUntraced(function*(url: string, count: number) {
  const { state } = yield* hasMessages(url, count)
  return yield* connected(url, async (connection): Promise<ReadonlyArray<Stored>> => {
    const consumer = await jetstream(connection).consumers.get("DEVICE_CLOUD")
    const found: Array<Stored> = []
    for await (const message of await consumer.fetch({ max_messages: state.messages })) {
      found.push({ subject: message.subject, id: message.headers!.get("Nats-Msg-Id"), body: message.json() })
    }
    return found
  })
})

const times = (found: ReadonlyArray<Stored>) => found.map(({ body }) => body.time)

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

const addStream = (url: string, config: Partial<StreamConfig>) =>
  managing(url, (manager) => manager.streams.add({ name: "DEVICE_CLOUD", ...config }))

it.effect.each([undefined, ""])(
  "the URL %j is refused by name, which a program without types may give",
  (url) =>
    Effect.gen(function*() {
      const error = Cause.squash(yield* Effect.flip(Effect.sandbox(start({ url: url as never }))))
      assert.instanceOf(error, TypeError)
      assert.match((error as TypeError).message, /^url: expected /)
    }).pipe(Effect.provide(stores))
)

describe.skipIf(!NatsTestServer.isInstalled)(NatsTestServer.named("events on NATS JetStream"), () => {
  it.live("are documents on subjects that name project, type, product and device", () =>
    Effect.gen(function*() {
      const server = yield* NatsTestServer.make()
      yield* server.start
      yield* start(server)
      yield* append(event(1, "a.b*c>d %é"), {
        _tag: "SceneExecuted",
        projectId: defaultProjectId,
        device: null,
        at: 2,
        sceneId: "s",
        sceneName: "s",
        executionId: "e",
        status: "succeeded",
        reason: ""
      })
      const found = yield* stored(server.url, 2)
      assert.deepStrictEqual(found.map(({ subject }) => subject), [
        "device-cloud.default.property.pk.a%2Eb%2Ac%3Ed%20%25%C3%A9",
        "device-cloud.default.scene._._"
      ])
      assert.deepInclude(found[0]!.body as object, {
        id: found[0]!.id,
        type: "property",
        product_key: "pk",
        device_id: "id-a.b*c>d %é",
        time: 1,
        properties: { n: { value: 1, time: 1 } }
      })
    }).pipe(Effect.provide(stores)))

  it.live("are there once when the publisher dies before its place is stored", () =>
    Effect.gen(function*() {
      const server = yield* NatsTestServer.make()
      yield* server.start
      const readers = yield* FeedReaderStore
      yield* append(...upTo(600).map((number) => event(number)))
      const dying = yield* start(server).pipe(
        Effect.provideService(FeedReaderStore, { ...readers, advance: () => Effect.never })
      )
      yield* stored(server.url, 600)
      yield* Scope.close(dying, Exit.void)
      yield* append(event(601))
      yield* start(server)
      const found = yield* stored(server.url, 601)
      assert.deepStrictEqual(times(found), upTo(601))
    }).pipe(Effect.provide(stores)))

  it.live("arrive when the server comes after the publisher, once and in order though it is killed under load", () =>
    Effect.gen(function*() {
      const server = yield* NatsTestServer.make()
      yield* start(server)
      yield* append(event(1))
      yield* server.start
      yield* stored(server.url, 1)
      for (let round = 0; round < 3; round++) {
        yield* append(...upTo(3000).map((number) => event(1 + 3000 * round + number)))
        const some = 1 + 3000 * round + 200
        yield* hasMessages(server.url, some)
        yield* server.kill
        yield* server.start
      }
      const found = yield* stored(server.url, 9001)
      assert.deepStrictEqual(times(found), upTo(9001))
    }).pipe(Effect.provide([stores, Logger.layer([])])))

  it.live("stay in order in a stream in which others publish, too", () =>
    Effect.gen(function*() {
      const server = yield* NatsTestServer.make()
      yield* server.start
      yield* addStream(server.url, { subjects: ["device-cloud.>", "other"] })
      const other = yield* Effect.acquireRelease(
        Effect.promise(() => connect({ servers: server.url })),
        (connection) => Effect.promise(() => connection.close())
      )
      yield* append(...upTo(2000).map((number) => event(number)))
      yield* Effect.forkScoped(Effect.forever(
        Effect.andThen(
          Effect.sync(() => {
            const named = headers()
            named.set("Nats-Msg-Id", String(Math.random()))
            other.publish("other", JSON.stringify({ time: 0 }), { headers: named })
          }),
          Effect.sleep(1)
        )
      ))
      yield* start(server)
      const found = yield* eventually(
        Effect.map(stored(server.url, 2000), (found) => found.filter(({ subject }) => subject !== "other")),
        // Each look reads the whole stream.
        { until: (found) => found.length >= 2000, interval: "500 millis", timeout: "50 seconds" }
      )
      assert.deepStrictEqual(times(found), upTo(2000))
    }).pipe(Effect.provide(stores)))

  it.live("are there once though one behind them is too large, for longer than the stream recognizes them", () =>
    Effect.gen(function*() {
      const server = yield* NatsTestServer.make()
      yield* server.start
      yield* addStream(server.url, { subjects: ["device-cloud.>"], duplicate_window: nanos(100) })
      const sink = yield* EventsNats.make(server)
      const large = { ...event(3), properties: { n: { value: "n".repeat(2 ** 21), time: 3 } } } as DomainEvent
      const entries = [{ id: "1", event: event(1) }, { id: "2", event: event(2) }, { id: "3", event: large }]
      for (let attempt = 0; attempt < 3; attempt++) {
        const refusal = yield* Effect.flip(sink.deliver(entries))
        assert.include(refusal.message, "NATS has not taken an event")
        // Until the stream has forgotten the ids.
        yield* Effect.sleep("500 millis")
      }
      assert.deepStrictEqual(times(yield* stored(server.url, 2)), [1, 2])
      yield* sink.deliver([...entries.slice(0, 2), { id: "3", event: event(3) }])
      assert.deepStrictEqual(times(yield* stored(server.url, 3)), [1, 2, 3])
    }))

  it.live("wait while the stream that is there has other subjects, and come when it has been changed", () =>
    Effect.gen(function*() {
      const server = yield* NatsTestServer.make()
      yield* server.start
      yield* addStream(server.url, { subjects: ["elsewhere"] })
      const messages: Array<string> = []
      const logger = Logger.layer([Logger.make(({ cause, message }) => void messages.push(`${message} ${cause}`))])
      yield* append(event(1))
      yield* start(server).pipe(Effect.provide(logger))
      yield* eventually(Effect.sync(() => messages), { until: (messages) => messages.length > 0 })
      assert.include(messages[0], "has the subjects elsewhere; expected device-cloud.>")
      yield* managing(server.url, (manager) => manager.streams.update("DEVICE_CLOUD", { subjects: ["device-cloud.>"] }))
      assert.deepStrictEqual(times(yield* stored(server.url, 1)), [1])
    }).pipe(Effect.provide(stores)))

  it.live("wait while the stream that is there mirrors another one, and the log says so", () =>
    Effect.gen(function*() {
      const server = yield* NatsTestServer.make()
      yield* server.start
      yield* managing(server.url, (manager) => manager.streams.add({ name: "ORIGIN", subjects: ["device-cloud.>"] }))
      yield* addStream(server.url, { mirror: { name: "ORIGIN" } })
      const sink = yield* EventsNats.make(server)
      const refusal = yield* Effect.flip(sink.deliver([{ id: "1", event: event(1) }]))
      assert.strictEqual(
        refusal.message,
        "The stream DEVICE_CLOUD has no subjects of its own; expected device-cloud.>"
      )
    }))

  it.live("are refused in the same words each time to a user that may not hear replies", () =>
    Effect.gen(function*() {
      const directory = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-nats-user-"))),
        (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
      )
      const file = join(directory, "nats.conf")
      const user = `{user: cloud, password: secret, permissions: {publish: ">", subscribe: "device-cloud.>"}}`
      yield* Effect.promise(() => writeFile(file, `authorization {users: [${user}]}\n`))
      const server = yield* NatsTestServer.make("-c", file)
      yield* server.start
      const credentials = { user: "cloud", password: Redacted.make("secret") }
      const sink = yield* EventsNats.make({ url: server.url, credentials })
      const refused = Effect.flip(sink.deliver([{ id: "1", event: event(1) }]))
      const refusals = [yield* refused, yield* refused].map(({ cause, message }) => [message, cause])
      const expected = ["JetStream cannot be used: the user may not subscribe to _INBOX.>", undefined]
      assert.deepStrictEqual(refusals, [expected, expected])
    }))

  it.live("go to a server that lets in who has the credentials file, however its lines end", () =>
    Effect.gen(function*() {
      const directory = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-nats-user-"))),
        (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
      )
      const user = nkeys.createUser()
      const config = join(directory, "nats.conf")
      yield* Effect.promise(() => writeFile(config, `authorization {users: [{nkey: ${user.getPublicKey()}}]}\n`))
      const server = yield* NatsTestServer.make("-c", config)
      yield* server.start
      const lines = [
        "-----BEGIN NATS USER JWT-----",
        "eyJ0",
        "------END NATS USER JWT------",
        "",
        "-----BEGIN USER NKEY SEED-----",
        new TextDecoder().decode(user.getSeed()),
        "------END USER NKEY SEED------"
      ]
      for (const [i, text] of [`${lines.join("\n")}\n`, lines.join("\n"), lines.join("\r\n")].entries()) {
        const sink = yield* EventsNats.make({ url: server.url, credentials: { file: Redacted.make(text) } })
        yield* sink.deliver([{ id: String(i), event: event(i) }])
      }
    }))

  it.live("leave no connection behind when the publisher ends while it connects", () =>
    Effect.gen(function*() {
      const server = yield* NatsTestServer.make()
      yield* server.start
      const sockets = new Set<Socket>()
      const slow = yield* Effect.acquireRelease(
        Effect.callback<Server>((resume) => {
          const slow = createServer((socket) => void sockets.add(socket.on("close", () => sockets.delete(socket))))
          slow.listen(0, "127.0.0.1", () => resume(Effect.succeed(slow)))
        }),
        (slow) => Effect.sync(() => void slow.close())
      )
      const publisher = yield* start({ url: `nats://127.0.0.1:${(slow.address() as AddressInfo).port}` })
      yield* append(event(1))
      yield* eventually(Effect.sync(() => [...sockets]), { until: (sockets) => sockets.length > 0 })
      yield* Scope.close(publisher, Exit.void)
      for (const socket of sockets) {
        const onwards = connectSocket(server.port, "127.0.0.1")
        onwards.pipe(socket)
        socket.pipe(onwards)
      }
      yield* eventually(Effect.sync(() => sockets.size), { until: (open) => open === 0 })
    }).pipe(Effect.provide(stores)))

  it.live("go over TLS to a server that the cloud trusts, under the name that it knows the cloud by", () =>
    Effect.gen(function*() {
      const directory = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "device-cloud-nats-tls-"))),
        (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
      )
      const { authority: ca } = yield* DevelopmentCertificate.loadOrMake(directory)
      const certificate = ["--tlscert", join(directory, "server.pem"), "--tlskey", join(directory, "server.key")]
      const server = yield* NatsTestServer.make("--tls", ...certificate, "--user", "cloud", "--pass", "secret")
      yield* server.start
      const url = `tls://localhost:${server.port}`
      const credentials = { user: "cloud", password: Redacted.make("secret") }
      const refusals = yield* Effect.forEach(
        [{ url, credentials }, { url, tls: { ca } }, { url, tls: { ca }, credentials: { token: Redacted.make("t") } }],
        (options) => Effect.flatMap(EventsNats.make(options), (sink) => Effect.flip(sink.deliver([])))
      )
      assert.lengthOf(refusals, 3)
      for (const [i, host] of ["localhost", "127.0.0.1"].entries()) {
        const sink = yield* EventsNats.make({ url: `tls://${host}:${server.port}`, tls: { ca }, credentials })
        yield* sink.deliver([{ id: String(i), event: event(i) }])
      }
      const { state } = yield* Effect.acquireUseRelease(
        Effect.promise(() => connect({ servers: url, tls: { ca }, user: "cloud", pass: "secret" })),
        (connection) =>
          Effect.promise(async () => await (await jetstreamManager(connection)).streams.info("DEVICE_CLOUD")),
        (connection) => Effect.promise(() => connection.close())
      )
      assert.strictEqual(state.messages, 2)
    }))
})
