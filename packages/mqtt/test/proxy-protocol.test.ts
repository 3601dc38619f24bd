import {
  defaultProjectId,
  DeviceCloud,
  Devices,
  Objects,
  parseTrustedProxies,
  TrustedProxies
} from "@device-cloud/core"
import { ListeningTimes, MqttServer } from "@device-cloud/mqtt"
import * as PlatformNode from "@device-cloud/platform-node"
import * as StorageMemory from "@device-cloud/storage-memory"
import { eventually, Fixtures } from "@device-cloud/testing"
import { RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import * as ProxyHeader from "../src/ProxyHeader.ts"
import { ping } from "./RawPackets.ts"

const { connectPacket, openTo } = RawMqttSocket

const signature = Buffer.from("0d0a0d0a000d0a515549540a", "hex")

/** A header of version 2; `first`: version and command, then family and protocol. */
const binary = (first: ReadonlyArray<number>, rest: ReadonlyArray<number>) =>
  Buffer.concat([signature, Buffer.from([...first, rest.length >> 8, rest.length & 255, ...rest])])

const ports = [0x30, 0x39, 0x22, 0xb3]
const ofIpv4 = [192, 0, 2, 7, 10, 0, 0, 1, ...ports]
const ofMapped = [...Array<number>(10).fill(0), 255, 255, 192, 0, 2, 7]
const ofIpv6 = [0x20, 0x01, 0x0d, 0xb8, ...Array<number>(11).fill(0), 5, ...Array<number>(16).fill(0), ...ports]

describe("headers of the PROXY protocol", () => {
  const origin = (address: string, isSecure = false) => ({ address, isSecure })
  it.each([
    ["TCP4", Buffer.from("PROXY TCP4 192.0.2.7 10.0.0.1 12345 8883\r\n"), origin("192.0.2.7")],
    ["TCP6", Buffer.from("PROXY TCP6 2001:db8::5 ::1 12345 8883\r\n"), origin("2001:db8::5")],
    ["TCP6 with an IPv4 address", Buffer.from("PROXY TCP6 ::ffff:c000:207 ::1 12345 8883\r\n"), origin("192.0.2.7")],
    ["TCP6 in capitals", Buffer.from("PROXY TCP6 2001:DB8::5 ::1 12345 8883\r\n"), origin("2001:db8::5")],
    ["UNKNOWN", Buffer.from("PROXY UNKNOWN\r\n"), undefined],
    ["version 2, IPv4", binary([0x21, 0x11], ofIpv4), origin("192.0.2.7")],
    ["version 2, IPv6", binary([0x21, 0x21], ofIpv6), origin("2001:db8::5")],
    [
      "version 2, IPv6 with an IPv4 address",
      binary([0x21, 0x21], [...ofMapped, ...Array<number>(16).fill(0), ...ports]),
      origin("192.0.2.7")
    ],
    [
      "version 2, with TLS",
      binary([0x21, 0x11], [...ofIpv4, 4, 0, 1, 0, 0x20, 0, 5, 1, 0, 0, 0, 0]),
      origin("192.0.2.7", true)
    ],
    ["version 2, LOCAL", binary([0x20, 0x00], []), undefined]
  ])("of %s are read, byte by byte", (_, header, expected) => {
    for (let length = 0; length < header.length; length++) {
      assert.strictEqual(ProxyHeader.parse(header.subarray(0, length)), "incomplete")
    }
    const read = { length: header.length, origin: expected }
    assert.deepStrictEqual(ProxyHeader.parse(Buffer.concat([header, Buffer.from("more")])), read)
  })

  it.each([
    ["an MQTT packet", Buffer.from([0x10, 20])],
    ["another word", Buffer.from("PROXX")],
    ["a family of another kind", Buffer.from("PROXY UDP4 192.0.2.7 10.0.0.1 1 2\r\n")],
    ["an address of another family", Buffer.from("PROXY TCP4 ::1 10.0.0.1 1 2\r\n")],
    ["a destination of another family", Buffer.from("PROXY TCP4 192.0.2.7 ::1 1 2\r\n")],
    ["a port out of range", Buffer.from("PROXY TCP4 192.0.2.7 10.0.0.1 65536 2\r\n")],
    ["a port that is none", Buffer.from("PROXY TCP4 192.0.2.7 10.0.0.1 1 x\r\n")],
    ["a line without end", Buffer.from("PROXY TCP4 192.0.2.7 10.0.0.1 1 2".padEnd(107))],
    ["another version", binary([0x31, 0x11], ofIpv4)],
    ["another command", binary([0x22, 0x11], ofIpv4)],
    ["too few bytes", binary([0x21, 0x11], [192, 0])],
    ["too many bytes", binary([0x21, 0x11], Array<number>(2000).fill(0))]
  ])("do not have %s", (_, bytes) => assert.strictEqual(ProxyHeader.parse(bytes), "malformed"))
})

const proxies = Result.getOrThrow(parseTrustedProxies(["127.0.0.2"]))

const server = MqttServer.layer({
  host: "127.0.0.1",
  tcp: { port: 0 },
  proxyProtocol: true,
  limits: { connectTime: "500 millis" }
}).pipe(
  Layer.provide(Layer.succeed(ListeningTimes, { quiet: 0, longest: 0, shadow: 0 })),
  Layer.provideMerge(DeviceCloud.layer),
  Layer.provideMerge(Objects.layer.pipe(Layer.provide(PlatformNode.MemoryObjectStore.layer))),
  Layer.provideMerge(StorageMemory.layer),
  Layer.provideMerge(PlatformNode.layer),
  Layer.provide(Layer.succeed(TrustedProxies, proxies))
)

layer(server, { excludeTestServices: true })("a broker behind a proxy", (it) => {
  const openFrom = (localAddress: string) =>
    Effect.flatMap(MqttServer, ({ mqtt }) => openTo({ url: mqtt! }, { localAddress }))

  it.effect("knows the address of the device, also when the header comes in parts", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const wire = yield* openFrom("127.0.0.2")
      yield* wire.write(Buffer.from("PROXY TCP4 192.0"))
      yield* Effect.sleep("20 millis")
      yield* wire.write(Buffer.from(".2.7 10.0.0.1 12345 8883\r\n"), connectPacket(device), ping)
      const [connack] = yield* wire.takeN(2)
      assert.deepInclude(connack, { cmd: "connack", returnCode: 0 })
      const { device: { ip } } = yield* eventually(
        Devices.use((devices) => devices.get(defaultProjectId, { deviceId: device.deviceId }))
      )
      assert.strictEqual(ip, "192.0.2.7")
    }))

  it.effect("refuses who is no proxy, who has no header, and who begins one and waits", () =>
    Effect.gen(function*() {
      const device = yield* Fixtures.createDevice()
      const header = Buffer.from("PROXY TCP4 192.0.2.7 10.0.0.1 12345 8883\r\n")
      for (
        const [from, parts] of [
          ["127.0.0.3", [header, connectPacket(device)]],
          ["127.0.0.2", [connectPacket(device)]],
          ["127.0.0.2", [header.subarray(0, 10)]]
        ] as const
      ) {
        const wire = yield* openFrom(from)
        yield* Effect.ignore(wire.write(...parts))
        assert.deepStrictEqual(yield* wire.rest, [])
      }
    }))
})
