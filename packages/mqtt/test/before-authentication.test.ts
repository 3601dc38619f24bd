import type { Limits } from "@device-cloud/mqtt"
import * as StorageMemory from "@device-cloud/storage-memory"
import { Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { connect as connectTcp, type Socket } from "node:net"
import { ping } from "./RawPackets.ts"

const { connectPacket, encode, open, openTo } = RawMqttSocket

const withLimits = (limits: Partial<Limits>) =>
  layer(MqttTestServer.layer(StorageMemory.layer, limits), { excludeTestServices: true })

/** The first bytes of a CONNECT that says that it has 100,000. */
const begun = (bytes: number) => {
  const packet = Buffer.from(
    encode(connectPacket(triple, { username: "u".repeat(60_000), clientId: "c".repeat(40_000) }))
  )
  return packet.subarray(0, bytes)
}

const triple = { productKey: "p", deviceName: "d", deviceSecret: "s" } as unknown as MqttDevice.DeviceTriple

/** The connection has ended, or ends. */
const ended = (wire: RawMqttSocket.RawMqttSocket) => Effect.map(wire.rest, () => wire.socket.destroyed)

/** A device that connects from there gets in. */
const getsIn = Effect.fnUntraced(function*(device: MqttDevice.DeviceTriple, localAddress?: string) {
  const wire = yield* open({ localAddress })
  yield* wire.write(connectPacket(device), ping)
  const connack = yield* wire.next
  return connack?.cmd === "connack" && connack.returnCode === 0
})

/** A socket that has asked to become a WebSocket. */
const upgraded = Effect.gen(function*() {
  const port = RawMqttSocket.portOf((yield* MqttTestServer).webSocket)
  const socket = yield* Effect.acquireRelease(
    Effect.sync(() => connectTcp(port, "127.0.0.1").on("error", () => {})),
    (socket) => Effect.sync(() => socket.destroy())
  )
  socket.write(
    "GET /mqtt HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
  )
  return socket
})

const answerTo = (socket: Socket) =>
  Effect.callback<string>((resume) => {
    socket.once("data", (chunk) => resume(Effect.succeed(String(chunk))))
  })

withLimits({})("before its device is authenticated", (it) => {
  it.effect.each(["tcp", "webSocket"] as const)(
    "a CONNECT of more than 16 KiB ends the connection over %s",
    (over) =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const options = { over, extension: "|signmethod=hmacsha1|", clientId: "c".repeat(15_000) } as const
        assert.strictEqual(yield* MqttDevice.connack(device, options), 0)
        assert.strictEqual(yield* MqttDevice.connack(device, { ...options, clientId: "c".repeat(17_000) }), -1)
      })
  )

  it.effect("a connection is cut when it has sent 16 KiB of a CONNECT, whatever length the packet claims", () =>
    Effect.gen(function*() {
      const wire = yield* open()
      yield* wire.write(begun(17 * 1024))
      assert.isTrue(yield* ended(wire))
    }))

  it.effect("a WebSocket is cut when it has sent 16 KiB of a message, whatever length the message claims", () =>
    Effect.gen(function*() {
      const socket = yield* upgraded
      // A masked binary message of 500,000 bytes.
      const header = Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0, 7, 0xa1, 0x20, 0, 0, 0, 0])
      socket.write(Buffer.concat([header, Buffer.alloc(17 * 1024)]))
      // It goes on until it is cut, or has sent nearly all.
      let sent = 0
      const goOn = () => {
        if (socket.writable && ++sent < 28) socket.write(Buffer.alloc(16 * 1024), () => setImmediate(goOn))
      }
      goOn()
      yield* Effect.callback<void>((resume) => {
        socket.on("close", () => resume(Effect.void))
        socket.resume()
      })
    }))
})

withLimits({ unauthenticatedBytes: 40_000 })("with a budget of bytes for all who are not authenticated", (it) => {
  it.effect("the one that has held some for longest makes room, and a device gets in", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const holders = [yield* open(), yield* open()]
      for (const wire of holders) yield* wire.write(begun(15_000))
      const third = yield* open()
      yield* third.write(begun(15_000))
      assert.isTrue(yield* ended(holders[0]!))
      assert.isTrue(yield* getsIn(device))
      assert.isFalse(third.socket.destroyed)
    }))
})

withLimits({ unauthenticated: 5, unauthenticatedOfAddress: 5 })("with few connections for an address", (it) => {
  it.effect.each(["tcp", "tls"] as const)(
    "idle connections keep no device out over %s: the oldest ends first",
    (over) =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const endpoint = (yield* MqttTestServer)[over]
        const idle = yield* Effect.forEach(Array.from({ length: 5 }), () => openTo(endpoint))
        assert.strictEqual(yield* MqttDevice.connack(device, { over }), 0)
        assert.isTrue(yield* ended(idle[0]!))
        assert.deepStrictEqual(idle.slice(1).map(({ socket }) => socket.destroyed), [false, false, false, false])
      })
  )
})

withLimits({ connections: 10, reservedConnections: 5 })("with a reserve for those who are known", (it) => {
  it.effect("a device gets in from an address that is known while strangers hold all other connections", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const others = yield* Fixtures.createDevices(5)
      assert.isTrue(yield* Effect.scoped(getsIn(device, "127.0.0.2")))
      // They are authenticated: they make no room.
      for (const other of others) assert.isTrue(yield* getsIn(other, "127.0.0.3"))
      assert.isFalse(yield* getsIn(device, "127.0.0.4"))
      assert.isTrue(yield* getsIn(device, "127.0.0.2"))
    }))
})

withLimits({ connectTime: "50 millis" })("with little time for a CONNECT", (it) => {
  it.effect.each(["tcp", "tls"] as const)(
    "a connection that says nothing over %s ends",
    (over) =>
      Effect.gen(function*() {
        assert.isTrue(yield* ended(yield* openTo((yield* MqttTestServer)[over])))
      })
  )

  it.effect("a connection that does not complete its CONNECT ends", () =>
    Effect.gen(function*() {
      const wire = yield* open()
      yield* wire.write(begun(10))
      assert.isTrue(yield* ended(wire))
    }))
})

withLimits({ unauthenticatedOfAddress: 1 })("a WebSocket for which there is no room", (it) => {
  it.effect("gets 503 with the headers of the API", () =>
    Effect.gen(function*() {
      assert.include(yield* Effect.flatMap(upgraded, answerTo), "101 Switching Protocols")
      const refused = (yield* Effect.flatMap(upgraded, answerTo)).split("\r\n")
      assert.strictEqual(refused[0], "HTTP/1.1 503 Service Unavailable")
      assert.includeMembers(refused, [
        "Retry-After: 1",
        "X-Content-Type-Options: nosniff",
        "X-Frame-Options: DENY",
        "Referrer-Policy: no-referrer",
        "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'"
      ])
    }))
})

withLimits({})("while strangers send hundreds of CONNECTs", (it) => {
  it.effect("one from a known address waits for a few of them, not for all", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      assert.isTrue(yield* getsIn(device))
      const strangers = yield* Effect.forEach(Array.from({ length: 200 }), () => open({ localAddress: "127.0.0.2" }), {
        concurrency: 50
      })
      const known = yield* open()
      // When a later connection is in, these are accepted.
      assert.isTrue(yield* getsIn(device))
      let refused = 0
      for (const { socket } of strangers) socket.once("data", () => refused++)
      const connect = encode(connectPacket(triple))
      for (const { socket } of [...strangers, known]) socket.write(connect)
      const refusedBefore = yield* Effect.callback<number>((resume) => {
        known.socket.once("data", () => resume(Effect.succeed(refused)))
      })
      assert.isBelow(refusedBefore, 200)
    }))
  it.effect("one that comes behind them from a known address is not the last", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      assert.isTrue(yield* getsIn(device))
      const port = RawMqttSocket.portOf((yield* MqttTestServer).tcp)
      /** Connects, sends the packet, and calls back when something comes. */
      const begin = (localAddress: string, packet: Uint8Array, onData: () => void) =>
        Effect.acquireRelease(
          Effect.sync(() => {
            const socket = connectTcp({ port, host: "127.0.0.1", localAddress }, () => socket.write(packet))
            return socket.on("error", () => {}).once("data", onData)
          }),
          (socket) => Effect.sync(() => socket.destroy())
        )
      let refused = 0
      const ofStranger = encode(connectPacket(triple))
      yield* Effect.forEach(Array.from({ length: 300 }), () => begin("127.0.0.2", ofStranger, () => refused++))
      const refusedBefore = yield* Deferred.make<number>()
      yield* begin("127.0.0.1", encode(connectPacket(device)), () =>
        Deferred.doneUnsafe(refusedBefore, Effect.succeed(refused)))
      assert.isBelow(yield* Deferred.await(refusedBefore), 300)
    }))
})
