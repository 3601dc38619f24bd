import {
  Commands,
  CommandStore,
  defaultProjectId,
  type Device,
  type DeviceCloud,
  type DeviceId,
  type DomainEvent,
  Feed,
  UplinkRateLimits,
  UplinkStore
} from "@device-cloud/core"
import * as StorageMemory from "@device-cloud/storage-memory"
import { CloudState, eventually, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Latch, Layer, Stream } from "effect"
import type { Socket } from "node:net"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { storages } from "../../../vitest.storages.ts"

/** Milliseconds; for slow machines. */
const timeout = 120_000

const megabyte = 1024 * 1024

const { encode, payloadOf, post, publish } = RawMqttSocket
const { topicOf } = MqttDevice

/** Reports once with QoS 1, and waits for the acknowledgement and the reply. */
const postAndWait = Effect.fnUntraced(function*(device: Device, wire: RawMqttSocket.RawMqttSocket, n: number) {
  yield* wire.write(post(device, { n }, { qos: 1, messageId: 1 + n % 65_535, id: String(n) }))
  const [puback, reply] = yield* wire.takeN(2)
  assert.deepInclude(puback, { cmd: "puback", messageId: 1 + n % 65_535 })
  assert.deepInclude(payloadOf(reply!), { id: String(n), code: 200 })
})

/** Many turns of everything that happens in this process. */
const rounds = 1000

const manyRoundTrips = Effect.fnUntraced(function*({ take, write }: RawMqttSocket.RawMqttSocket) {
  for (let i = 0; i < rounds; i++) {
    yield* write({ cmd: "pingreq" })
    assert.deepInclude(yield* take, { cmd: "pingresp" })
  }
})

/** Bytes of buffers that somebody still holds. */
const memoryInUse = (): number => {
  setFlagsFromString("--expose-gc")
  const collectGarbage = runInNewContext("gc") as () => void
  collectGarbage()
  return process.memoryUsage().arrayBuffers
}

/** Bytes on their way into a socket, again and again. */
class Flood {
  /** How often they were written. */
  sent = 0
  /** How often the socket took no more. */
  pauses = 0
  readonly #socket: Socket
  readonly #bytes: Uint8Array
  readonly #times: number

  constructor(socket: Socket, bytes: Uint8Array, times: number) {
    this.#socket = socket
    this.#bytes = bytes
    this.#times = times
  }

  /** Writes as fast as the socket takes it. */
  get run(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      const write = () => {
        while (this.sent < this.#times) {
          this.sent++
          if (this.#socket.write(this.#bytes)) continue
          this.pauses++
          this.#socket.once("drain", write)
          return
        }
        resume(Effect.void)
      }
      write()
      return Effect.sync(() => this.#socket.removeListener("drain", write))
    })
  }
}

/** A server on which devices may send as much as they can: what holds without rates. */
const serverWithoutRates = <A extends DeviceCloud.Stores, E>(stores: Layer.Layer<A, E>) =>
  Layer.provide(
    MqttTestServer.layer(stores),
    Layer.succeed(UplinkRateLimits, { device: unlimited, project: unlimited })
  )

const unlimited = { messages: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY }

layer(serverWithoutRates(StorageMemory.layer), { excludeTestServices: true })("in a storm", (it) => {
  it.effect(
    "devices that are cut at once and come back at once are online, and each change is told in order",
    () =>
      Effect.gen(function*() {
        const devices = yield* Fixtures.createDevices(250)
        const told = new Map<DeviceId, Array<DomainEvent & { readonly _tag: "DeviceStatusChanged" }>>()
        for (const { deviceId } of devices) told.set(deviceId, [])
        const feed = yield* Feed
        yield* feed.stream({ projectId: undefined, after: yield* feed.end }).pipe(
          Stream.runForEach(({ event }) =>
            Effect.sync(() => {
              if (event._tag === "DeviceStatusChanged") told.get(event.device.deviceId)?.push(event)
            })
          ),
          Effect.forkScoped({ startImmediately: true })
        )
        const connectAll = Effect.forEach(devices, (device) => RawMqttSocket.connect(device), {
          concurrency: "unbounded"
        })
        let wires = yield* connectAll
        for (let i = 0; i < 3; i++) {
          wires.forEach(({ socket }, i) => i % 2 === 0 ? socket.destroy() : socket.resetAndDestroy())
          wires = yield* connectAll
        }
        for (const device of devices) {
          const { status, statusVersion } = yield* CloudState.device(device)
          assert.strictEqual(status, "online")
          const events = told.get(device.deviceId)!
          yield* eventually(Effect.sync(() => events.length), { until: (length) => length >= statusVersion })
          assert.deepStrictEqual(
            events.map(({ status, version }) => [version, status]),
            Array.from({ length: statusVersion }, (_, i) => [i + 1, i % 2 === 0 ? "online" : "offline"])
          )
        }
      }),
    timeout
  )

  it.effect(
    "a flood of QoS 0 is slowed down, answered to the last message, and others are served meanwhile",
    () =>
      Effect.gen(function*() {
        const [talker, ...flooders] = yield* Fixtures.createDevices(3)
        const talking = yield* RawMqttSocket.connect(talker!)
        const perWrite = 40
        const floods = yield* Effect.forEach(
          flooders,
          Effect.fnUntraced(function*(device, i) {
            const wire = yield* RawMqttSocket.connect(device)
            const wantsReplies = i % 2 === 0
            const bytes = Buffer.concat(
              Array.from({ length: perWrite }, () => encode(post(device, { a: 1 }, wantsReplies ? { id: "1" } : {})))
            )
            const writes = Math.ceil(5 * megabyte / bytes.length)
            return { device, wire, wantsReplies, writes, flood: new Flood(wire.socket, bytes, writes) }
          })
        )
        const flooding = yield* Effect.forkChild(
          Effect.forEach(floods, ({ flood }) => flood.run, { concurrency: "unbounded", discard: true })
        )
        let posted = 0
        while (posted < 100 || flooding.pollUnsafe() === undefined) yield* postAndWait(talker!, talking, ++posted)
        yield* Fiber.join(flooding)
        for (const { device, flood, wantsReplies, wire, writes } of floods) {
          assert.isAbove(flood.pauses, 0)
          yield* wire.write(post(device, { a: 2 }, { id: "last" }))
          const answers = yield* wire.takeN((wantsReplies ? writes * perWrite : 0) + 1)
          assert.strictEqual(payloadOf(answers.at(-1)!)["id"], "last")
          assert.isTrue(answers.every((answer) => payloadOf(answer)["code"] === 200))
          assert.deepStrictEqual(yield* CloudState.reported(device), { a: 2 })
        }
        assert.deepStrictEqual(yield* CloudState.reported(talker!), { n: posted })
      }),
    timeout
  )

  it.effect(
    "a device that sends and never reads its replies is not read either, and holds up nobody",
    () =>
      Effect.gen(function*() {
        const [talker, deaf] = yield* Fixtures.createDevices(2)
        const talking = yield* RawMqttSocket.connect(talker!)
        const wire = yield* RawMqttSocket.connect(deaf!)
        wire.socket.pause()
        const bytes = Buffer.concat(Array.from({ length: 40 }, () => encode(post(deaf!, { a: 1 }, { id: "1" }))))
        const flood = new Flood(wire.socket, bytes, Math.ceil(200 * megabyte / bytes.length))
        const flooding = yield* Effect.forkChild(flood.run)
        for (let n = 1; n <= 100; n++) yield* postAndWait(talker!, talking, n)
        // The talker is served all the time; the flood stands still once all buffers are full, far from its end.
        for (let sent = -1; sent !== flood.sent;) {
          sent = flood.sent
          yield* manyRoundTrips(talking)
        }
        assert.isUndefined(flooding.pollUnsafe())
        assert.strictEqual((yield* CloudState.device(deaf!)).status, "online")
        wire.socket.destroy()
        yield* CloudState.untilStatus(deaf!, "offline")
      }),
    timeout
  )

  it.effect(
    "a device that never reads its commands holds up nobody, and gets them when it reads again",
    () =>
      Effect.gen(function*() {
        const commands = yield* Commands
        const [other, deaf] = yield* Fixtures.createDevices(2)
        const listening = yield* RawMqttSocket.connect(other!)
        const wire = yield* RawMqttSocket.connect(deaf!)
        yield* wire.write({
          cmd: "subscribe",
          messageId: 1,
          subscriptions: [{ topic: topicOf(deaf!, "thing/service/#"), qos: 1 }]
        })
        assert.deepInclude(yield* wire.take, { cmd: "suback" })
        wire.socket.pause()
        const text = "x".repeat(100_000)
        for (let n = 1; n <= 100; n++) {
          yield* commands.callService(defaultProjectId, deaf!.deviceId, "fill", { text })
          const command = yield* commands.callService(defaultProjectId, other!.deviceId, "fill", { n })
          const delivered = yield* listening.take
          assert.deepInclude(payloadOf(delivered), { id: String(command.messageId), params: { n } })
          yield* listening.write(
            publish(topicOf(other!, "thing/service/fill_reply"), {
              payload: JSON.stringify({ id: String(command.messageId), code: 200, data: {} }),
              qos: 1,
              messageId: n
            })
          )
          assert.deepInclude(yield* listening.take, { cmd: "puback", messageId: n })
          yield* postAndWait(other!, listening, n)
        }
        wire.socket.resume()
        const told = (yield* wire.takeN(100)).map((packet) => payloadOf(packet)["id"])
        assert.deepStrictEqual(told, told.toSorted((a, b) => Number(a) - Number(b)))
        assert.strictEqual(new Set(told).size, 100)
      }),
    timeout
  )

  it.effect(
    "messages of QoS 2 that are never completed do not stay in memory, whatever their size",
    () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const wire = yield* RawMqttSocket.connect(device, { clean: false })
        const payload = JSON.stringify({ sys: { ack: 0 }, params: { a: 1 }, padding: "x".repeat(megabyte / 5) })
        const before = memoryInUse()
        for (let messageId = 1; messageId <= 64; messageId++) {
          yield* wire.write({ ...post(device, {}, { qos: 2, messageId }), payload })
          assert.deepInclude(yield* wire.take, { cmd: "pubrec", messageId })
        }
        // Of 13 megabytes. What is not held may be collected a little later.
        yield* eventually(Effect.sync(() => memoryInUse() - before), { until: (held) => held < 5 * megabyte })
      }),
    timeout
  )

  it.effect("a device that comes back gets all that waits for it, however much that is", () =>
    Effect.gen(function*() {
      const commands = yield* Commands
      const device = yield* Fixtures.createDevice()
      const text = "x".repeat(100_000)
      const waiting = yield* Effect.forEach(
        Array.from({ length: 100 }),
        () => commands.callService(defaultProjectId, device.deviceId, "fill", { text })
      )
      const wire = yield* RawMqttSocket.connect(device)
      const delivered = yield* wire.takeN(waiting.length)
      assert.deepStrictEqual(
        delivered.map((packet) => payloadOf(packet)["id"]),
        waiting.map(({ messageId }) => String(messageId))
      )
    }), timeout)
})

for (const [name, storage] of storages) {
  const gate = Latch.makeUnsafe(true)

  const gatedStorage = Layer.mergeAll(
    Layer.effect(
      UplinkStore,
      Effect.map(UplinkStore, (store): UplinkStore["Service"] => ({
        ...store,
        commit: (batch) => Effect.andThen(gate.await, store.commit(batch))
      }))
    ),
    Layer.effect(
      CommandStore,
      Effect.map(CommandStore, (store): CommandStore["Service"] => ({
        ...store,
        advance: (progress) => Effect.andThen(gate.await, store.advance(progress))
      }))
    )
  ).pipe(Layer.provideMerge(storage))

  layer(serverWithoutRates(gatedStorage), { excludeTestServices: true })(
    `while the store, ${name}, stands still`,
    (it) => {
      it.effect(
        "a flood waits in the network; when the store goes on, every message of it is answered",
        () =>
          Effect.gen(function*() {
            const [other, flooder] = yield* Fixtures.createDevices(2)
            const waiting = yield* RawMqttSocket.connect(other!)
            const wire = yield* RawMqttSocket.connect(flooder!)
            const bytes = encode({
              ...post(flooder!, {}),
              payload: JSON.stringify({ id: "1", params: { a: 1 }, padding: "x".repeat(60_000) })
            })
            const times = Math.ceil(100 * megabyte / bytes.length)
            yield* gate.close
            const flood = new Flood(wire.socket, bytes, times)
            const flooding = yield* Effect.forkChild(flood.run)
            yield* manyRoundTrips(waiting)
            // The connection is full: it takes nothing more.
            const { sent } = flood
            yield* manyRoundTrips(waiting)
            assert.strictEqual(flood.sent, sent)
            assert.isBelow(sent, times)
            yield* gate.open
            yield* Fiber.join(flooding)
            const replies = yield* wire.takeN(times)
            assert.isTrue(replies.every((reply) => payloadOf(reply)["code"] === 200))
            yield* postAndWait(other!, waiting, 1)
          }).pipe(Effect.ensuring(gate.open)),
        timeout
      )

      it.effect("what another device says of a command takes nothing from the answer of its own device", () =>
        Effect.gen(function*() {
          const commands = yield* Commands
          const [device, other] = yield* Fixtures.createDevices(2)
          const [wire, otherWire] = [yield* RawMqttSocket.connect(device!), yield* RawMqttSocket.connect(other!)]
          const { messageId } = yield* commands.setProperties(defaultProjectId, device!.deviceId, { a: 1 })
          yield* wire.take
          const answer = (from: Device, id: number, code: number) =>
            publish(topicOf(from, "thing/service/property/set_reply"), {
              payload: JSON.stringify({ id: String(id), code, data: {} })
            })
          yield* gate.close
          // The store holds up the first of them; the others wait together.
          for (
            const [to, packet] of [
              [otherWire, post(other!, { a: 1 })],
              [otherWire, answer(other!, messageId, 500)],
              [wire, answer(device!, messageId, 200)]
            ] as const
          ) {
            yield* to.write(packet, { cmd: "pingreq" })
            assert.deepInclude(yield* to.take, { cmd: "pingresp" })
          }
          yield* gate.open
          // Its reply comes after what was said before it.
          yield* postAndWait(device!, wire, 1)
          const ended = yield* commands.get(defaultProjectId, device!.deviceId, messageId)
          assert.deepInclude(ended, { state: "succeeded", code: 200 })
        }).pipe(Effect.ensuring(gate.open)))
    }
  )
}
