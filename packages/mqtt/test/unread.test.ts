import { defaultProjectId, DeviceId, DeviceName, ProductKey, ThingModels, Turns } from "@device-cloud/core"
import type { Limits } from "@device-cloud/mqtt"
import * as StorageMemory from "@device-cloud/storage-memory"
import { CloudState, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, it as plain, layer } from "@effect/vitest"
import type { Client } from "aedes"
import { Effect, Fiber } from "effect"
import { Duplex } from "node:stream"
import { TurnWrites } from "../src/protocol/TurnWrites.ts"
import { MqttConnection } from "../src/session/MqttConnection.ts"
import { Output, UnsentOutput } from "../src/session/UnsentOutput.ts"

/** A stream into which so many bytes were written, and which sends none. */
const stuck = (bytes: number) => {
  const stream = new Duplex({ read() {}, write() {}, highWaterMark: 1 })
  stream.write(Buffer.alloc(bytes))
  return new Output(stream)
}

const make = (limits: { readonly bytes?: number; readonly time?: number }) => {
  const clock = { now: 0 }
  let ended = 0
  const unsent = new UnsentOutput({ bytes: 1000, time: 60_000, ...limits }, () => clock.now, () => ended++)
  return { clock, unsent, ended: () => ended }
}

const isEnded = ({ stream }: Output) => stream.destroyed

plain.effect(
  "replies to what a device still says do not cut off the last message that it has not read",
  () =>
    Effect.gen(function*() {
      const packets: Array<Buffer> = []
      const unread: Array<() => void> = []
      const stream = new Duplex({
        read() {},
        write(bytes: Buffer, _, done) {
          packets.push(bytes)
          unread.push(done)
        }
      })
      const connection = new MqttConnection({
        client: { closed: false, subscriptions: {} } as unknown as Client,
        stream,
        device: {
          deviceId: DeviceId.make("d"),
          projectId: defaultProjectId,
          productKey: ProductKey.make("p"),
          deviceName: DeviceName.make("n"),
          validateType: "weak"
        },
        ip: "192.0.2.1",
        transport: "mqtt",
        recorder: { isOn: () => false, isTraced: () => false, note() {}, noteNamed() {}, changed: Effect.void },
        certificate: undefined,
        route: () => undefined,
        readiness: { quiet: 0, longest: 0, shadow: 0, now: () => 0, awaited: new Set() },
        unsent: make({}).unsent,
        writes: new TurnWrites(new Turns({ now: () => 0, afterOthers: setImmediate })),
        maxUnsentBytes: 1000
      })
      connection.opened()
      connection.send("last", "message", 0)
      const closing = yield* Effect.forkChild(connection.close("deleted"), { startImmediately: true })
      connection.send("reply", "message", 0)
      connection.confirm(1)
      const ended = new Promise((resolve) => stream.once("finish", resolve).once("close", resolve))
      for (const read of unread) read()
      yield* Effect.promise(() => ended)
      assert.isFalse(stream.destroyed)
      assert.include(String(packets), "last")
      assert.notInclude(String(packets), "reply")
      stream.destroy()
      yield* Fiber.join(closing)
    })
)

plain("above the limit of bytes the connection that was not read for longest ends", () => {
  const { ended, unsent } = make({})
  const [first, second, third] = [stuck(400), stuck(400), stuck(300)]
  unsent.waits(first)
  unsent.waits(second)
  assert.strictEqual(unsent.bytes, 800)
  unsent.waits(third)
  assert.deepStrictEqual([first, second, third].map(isEnded), [true, false, false])
  assert.deepStrictEqual([unsent.bytes, ended()], [700, 1])
  second.stream.write(Buffer.alloc(50))
  unsent.waits(second)
  assert.strictEqual(unsent.bytes, 750)
  unsent.drained(second)
  unsent.drained(second)
  assert.strictEqual(unsent.bytes, 300)
})

plain("a connection ends when its device has read nothing for too long", () => {
  const { clock, unsent } = make({ time: 1000 })
  const [silent, reading] = [stuck(10), stuck(10)]
  unsent.waits(silent)
  unsent.waits(reading)
  reading.bytes += 5
  clock.now = 999
  unsent.endStale()
  assert.isFalse(isEnded(silent))
  clock.now = 1000
  unsent.endStale()
  // The other one had fewer bytes to read a millisecond ago.
  assert.deepStrictEqual([silent, reading].map(isEnded), [true, false])
})

const withLimits = (limits: Partial<Limits>) =>
  layer(MqttTestServer.layer(StorageMemory.layer, limits), { excludeTestServices: true })

/** Replies to a request for its thing model have about 100 KB. */
const createDevice = Effect.gen(function*() {
  const product = yield* Fixtures.createProduct()
  const properties = Array.from({ length: 100 }, (_, i) => ({
    id: `p${i}`,
    name: `Property ${i}`,
    desc: "x".repeat(900),
    accessMode: "rw",
    dataType: { type: "int", min: 0, max: 100 }
  }))
  yield* (yield* ThingModels).importFrom(
    defaultProjectId,
    product.productKey,
    "metadata",
    JSON.stringify({ properties })
  )
  return yield* Fixtures.createDevice(product)
})

/** Asks for more than the network holds, and reads nothing of it. */
const askAndNotRead = Effect.fnUntraced(function*(device: MqttDevice.DeviceTriple) {
  const wire = yield* RawMqttSocket.connect(device)
  wire.socket.pause()
  const topic = MqttDevice.topicOf(device, "thing/dsltemplate/get")
  for (let id = 1; id <= requests; id++) {
    yield* wire.write(RawMqttSocket.publish(topic, { payload: JSON.stringify({ id: String(id), params: {} }) }))
  }
  return wire
})

const requests = 300

withLimits({})("a device that asks for large replies and does not read", (it) => {
  it.effect("gets each of them once when it reads", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      const wire = yield* askAndNotRead(device)
      // Others are served meanwhile.
      const other = yield* MqttDevice.connect(yield* Fixtures.createDevice())
      const posted = yield* other.request(other.topic("thing/event/property/post"), { a: 1 })
      assert.strictEqual(posted.code, 200)
      wire.socket.resume()
      const replies = yield* wire.takeN(requests)
      const ids = replies.map((reply) => Number(RawMqttSocket.payloadOf(reply)["id"]))
      assert.deepStrictEqual(ids.toSorted((a, b) => a - b), Array.from({ length: requests }, (_, i) => i + 1))
    }))
})

withLimits({ unsentTime: "50 millis" })("a device that does not read for too long", (it) => {
  it.effect("is offline", () =>
    Effect.gen(function*() {
      const device = yield* createDevice
      yield* askAndNotRead(device)
      yield* CloudState.untilStatus(device, "offline")
    }))
})

withLimits({ unsentBytes: 200_000 })("when many devices do not read", (it) => {
  it.effect("the one that was not read for longest is offline, and those who read are served", () =>
    Effect.gen(function*() {
      const reader = yield* MqttDevice.connect(yield* createDevice)
      const [first, second] = [yield* createDevice, yield* createDevice]
      yield* askAndNotRead(first)
      yield* askAndNotRead(second)
      yield* CloudState.untilStatus(first, "offline")
      const reply = yield* reader.request(reader.topic("thing/dsltemplate/get"), {})
      assert.strictEqual(reply.code, 200)
    }))
})
