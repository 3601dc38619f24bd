import { defaultProjectId, Devices } from "@device-cloud/core"
import { CloudState, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect, Queue } from "effect"
import { connect as connectMqtt, type IClientOptions } from "mqtt"
import { generate, type IConnackPacket, type IConnectPacket } from "mqtt-packet"
import { connect as connectTcp } from "node:net"
import { storages } from "../../../vitest.storages.ts"

/** Nothing more has arrived after a round trip. */
const nothingMore = Effect.fnUntraced(function*(device: MqttDevice.MqttDevice) {
  yield* device.post({ last: 1 }, { id: "last" })
  const { message } = yield* device.take
  assert.strictEqual(message["id"], "last")
})

/** Sends bytes on a raw connection; answers all that came back before it was closed. */
const exchange = (port: number, ...packets: ReadonlyArray<Buffer>) =>
  Effect.callback<Buffer>((resume) => {
    const chunks: Array<Buffer> = []
    const socket = connectTcp(port, "127.0.0.1", () => {
      for (const packet of packets) socket.write(packet)
    })
    socket.on("data", (chunk) => chunks.push(chunk))
    socket.on("error", () => {})
    socket.on("close", () => resume(Effect.succeed(Buffer.concat(chunks))))
    return Effect.sync(() => socket.destroy())
  })

/** Connects, and returns the error of the client, with the CONNACK. */
const refusal = (url: string, options: IClientOptions) =>
  Effect.callback<{ readonly code: unknown; readonly packet: IConnackPacket }>((resume) => {
    const client = connectMqtt(url, options)
    let packet: IConnackPacket | undefined
    client.on("packetreceive", (received) => {
      if (received.cmd === "connack") packet = received
    })
    client.on("connect", () => resume(Effect.die(new Error("The broker has accepted MQTT 5"))))
    client.on(
      "error",
      ({ code }: Error & { readonly code?: unknown }) =>
        resume(
          packet === undefined
            ? Effect.die(new Error(`no CONNACK (${String(code)})`))
            : Effect.succeed({ code, packet })
        )
    )
    client.on("close", () => resume(Effect.die(new Error("The broker has closed the connection without a CONNACK"))))
    return Effect.sync(() => void client.end(true))
  })

const connectPacket: IConnectPacket = {
  cmd: "connect",
  protocolId: "MQTT",
  protocolVersion: 4,
  clientId: "c",
  clean: true,
  keepalive: 0
}

/** Where they stand in a CONNECT packet. */
const protocolLevelAt = 8
const connectFlagsAt = 9

const withByte = (packet: Buffer, position: number, byte: number) => {
  packet[position] = byte
  return packet
}

for (const [name, storage] of storages) {
  layer(MqttTestServer.layer(storage), { excludeTestServices: true })(`the MQTT broker on ${name}`, (it) => {
    it.effect("a device connects over TLS, posts, gets its reply, and is seen at once", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const connected = yield* MqttDevice.connect(device, { over: "tls" })
        const { activatedAt, ip, status } = yield* CloudState.device(device)
        assert.deepStrictEqual([status, ip, activatedAt !== null], ["online", "127.0.0.1", true])

        yield* connected.post({ temperature: 21.5, mode: { value: "eco", time: 1795231554300 } }, { id: "17", qos: 1 })
        assert.deepStrictEqual(yield* connected.take, {
          topic: connected.topic("thing/event/property/post_reply"),
          qos: 1,
          message: {
            id: "17",
            code: 200,
            data: {},
            message: "success",
            method: "thing.event.property.post",
            version: "1.0"
          }
        })
        assert.deepStrictEqual(yield* CloudState.reported(device), { temperature: 21.5, mode: "eco" })

        yield* connected.end
        yield* CloudState.untilStatus(device, "offline")
      }))

    it.effect("speaks TLS 1.2 and 1.3", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        for (const tlsVersion of ["TLSv1.2", "TLSv1.3"] as const) {
          const connected = yield* MqttDevice.connect(device, { over: "tls", tlsVersion })
          assert.strictEqual(connected.client.connected, true)
        }
        assert.strictEqual(yield* MqttDevice.connack(device, { over: "tls", tlsVersion: "TLSv1.1" }), -1)
      }))

    it.effect.each<readonly [string, MqttDevice.ConnectOptions]>([
      ["hmacmd5", { signMethod: "hmacmd5" }],
      ["hmacsha1", { signMethod: "hmacsha1" }],
      ["hmacsha256", { signMethod: "hmacsha256" }],
      ["aescmac", { signMethod: "aescmac" }],
      ["a bare client id", { extension: "" }],
      ["authType 2", { extension: "|authType=2|" }],
      ["authType 3", { extension: "|signmethod=hmacsha1,authType=3|" }],
      ["a signed timestamp", {
        timestamp: "2524608000000",
        extension: "|timestamp=2524608000000,signmethod=hmacsha1|"
      }],
      ["pairs that mean nothing here", { extension: "|securemode=2,_v=sdk-c-4.2.0,ext=3,regnwl,signmethod=hmacSha1|" }],
      ["an empty client id in a clean session", { clientId: "" }],
      ["a long client id", { clientId: "c".repeat(300) }]
    ])("accepts %s", ([, options]) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* MqttDevice.connack(yield* Fixtures.createDevice(), options), 0)
      }))

    it.effect("accepts a signature in upper case", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const { password } = MqttDevice.credentials(device)
        assert.strictEqual(yield* MqttDevice.connack(device, { password: password.toUpperCase() }), 0)
      }))

    it.effect.each<readonly [string, number, MqttDevice.ConnectOptions]>([
      ["a wrong signature", 4, { password: "0".repeat(40) }],
      ["the signature of another method", 4, { signMethod: "hmacmd5", extension: "|signmethod=hmacsha1|" }],
      ["an unsigned timestamp", 4, { extension: "|timestamp=1|" }],
      ["a password of the wrong length", 4, { password: "abc" }],
      ["an unknown sign method", 4, { extension: "|signmethod=sha512|" }],
      ["an unknown authType", 4, { extension: "|authType=4|" }],
      ["a user name without product key", 4, { username: "device" }],
      ["an unknown device", 4, { username: "missing&missing" }],
      ["a user name of 10 KB", 4, { username: `${"x".repeat(10_000)}&pk` }],
      ["a NUL character in the user name", 4, { username: "a\0b&pk" }]
    ])("refuses %s", ([, code, options]) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* MqttDevice.connack(yield* Fixtures.createDevice(), options), code)
      }))

    it.effect.each<readonly [string, Buffer, number]>([
      ["a CONNECT without credentials", generate(connectPacket), 4],
      [
        "an empty client id in a kept session",
        withByte(generate({ ...connectPacket, clientId: "" }), connectFlagsAt, 0),
        2
      ],
      ...[0, 1, 2, 6, 9, 127].map((level) =>
        [`protocol level ${level}`, withByte(generate(connectPacket), protocolLevelAt, level), 1] as const
      )
    ])("refuses %s on the wire", ([, packet, code]) =>
      Effect.gen(function*() {
        const answer = yield* exchange(RawMqttSocket.portOf((yield* MqttTestServer).tcp), packet)
        assert.deepStrictEqual([...answer], [0x20, 2, 0, code])
      }))

    it.effect.each(["tcp", "tls", "webSocket"] as const)(
      "tells a client of MQTT 5 over %s that it speaks an earlier version",
      (transport) =>
        Effect.gen(function*() {
          const { ca, url } = (yield* MqttTestServer)[transport]
          const device = yield* Fixtures.createDevice()
          const { code, packet } = yield* refusal(url, {
            ...MqttDevice.credentials(device),
            protocolVersion: 5,
            reconnectPeriod: 0,
            properties: { sessionExpiryInterval: 60, receiveMaximum: 10, topicAliasMaximum: 5 },
            ...ca === undefined ? {} : { ca }
          })
          assert.strictEqual(code, 0x84)
          assert.strictEqual(packet.reasonCode, 0x84)
          assert.include(packet.properties?.reasonString, "MQTT 3.1.1")
          assert.strictEqual((yield* CloudState.device(device)).status, "unactive")
        })
    )

    it.effect("refuses a disabled device with code 5, also while it is connected", () =>
      Effect.gen(function*() {
        const devices = yield* Devices
        const device = yield* Fixtures.createDevice()
        const connected = yield* MqttDevice.connect(device, { over: "tls" })
        yield* devices.disable(defaultProjectId, device.deviceId)
        const { message, topic } = yield* connected.take
        assert.deepStrictEqual([topic, message["method"]], [connected.topic("thing/disable"), "thing.disable"])
        yield* connected.closed
        assert.strictEqual(yield* MqttDevice.connack(device, { over: "tls" }), 5)
        yield* CloudState.untilStatus(device, "offline")
        yield* devices.enable(defaultProjectId, device.deviceId)
        assert.strictEqual(yield* MqttDevice.connack(device, { over: "tls" }), 0)
      }))

    it.effect("cuts off a deleted device", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const connected = yield* MqttDevice.connect(device)
        yield* (yield* Devices).remove(defaultProjectId, device.deviceId)
        yield* connected.closed
        assert.strictEqual(yield* MqttDevice.connack(device), 4)
      }))

    it.effect("has one session per device, whatever its client id", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const first = yield* MqttDevice.connect(device, { clientId: "first" })
        const second = yield* MqttDevice.connect(device, { over: "tls", clientId: "second" })
        yield* first.closed
        yield* second.post({ a: 1 })
        assert.strictEqual((yield* second.take).message["code"], 200)
        const { status, statusVersion } = yield* CloudState.device(device)
        assert.deepStrictEqual([status, statusVersion], ["online", 1])
      }))

    it.effect("lets two devices have the same client id", () =>
      Effect.gen(function*() {
        const [one, other] = [yield* Fixtures.createDevice(), yield* Fixtures.createDevice()]
        const first = yield* MqttDevice.connect(one, { clientId: "same" })
        const second = yield* MqttDevice.connect(other, { clientId: "same" })
        for (const connected of [first, second]) {
          yield* connected.post({ a: 1 })
          assert.strictEqual((yield* connected.take).message["code"], 200)
        }
      }))

    it.effect("delivers each reply exactly once, without a subscription and with overlapping ones", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const connected = yield* MqttDevice.connect(device)
        for (const qos of [0, 1, 2] as const) {
          yield* connected.post({ qos }, { id: `without ${qos}`, qos })
          const { message, qos: replyQos } = yield* connected.take
          assert.deepStrictEqual([message["id"], replyQos], [`without ${qos}`, Math.min(qos, 1)])
        }
        const granted = yield* connected.subscribe([
          connected.topic("thing/event/property/post_reply"),
          connected.topic("thing/event/+/post_reply"),
          connected.topic("#")
        ], 0)
        assert.deepStrictEqual(granted, [0, 0, 0])
        yield* connected.post({ qos: 1 }, { id: "with", qos: 1 })
        const { message, qos } = yield* connected.take
        assert.deepStrictEqual([message["id"], qos], ["with", 0])
        yield* nothingMore(connected)
      }))

    it.effect("takes the messages of a device in their order", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const connected = yield* MqttDevice.connect(device)
        const posts = Array.from({ length: 300 }, (_, i) => i)
        yield* Effect.forEach(posts, (i) => connected.post({ counter: i }, { id: i, qos: 1 }), {
          concurrency: "unbounded"
        })
        const replies = yield* Queue.takeN(connected.received, posts.length)
        assert.deepStrictEqual(replies.map(({ message }) => message["id"]), posts)
        assert.deepStrictEqual(yield* CloudState.reported(device), { counter: 299 })
      }))

    it.effect("answers what it cannot use with the protocol's codes, and stays up", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const connected = yield* MqttDevice.connect(device)
        const post = connected.topic("thing/event/property/post")
        const cases: ReadonlyArray<readonly [topic: string, payload: string | Buffer, code: number, id: unknown]> = [
          [post, "not json", 6207, "0"],
          [post, "", 6207, "0"],
          [post, Buffer.from([0xff, 0xfe, 0x00]), 6207, "0"],
          [post, "[1]", 460, "0"],
          [post, "null", 460, "0"],
          [post, `{"id":"a","params":"text"}`, 460, "a"],
          [post, `{"id":5,"params":{"x":1}}`, 200, 5],
          [post, `{"id":{},"params":{}}`, 200, "0"],
          [`${post}?_rid=1`, `{"id":"rid","params":{}}`, 200, "rid"],
          [connected.topic("thing/no/such"), `{"id":"n"}`, 6203, "n"]
        ]
        for (const [topic, payload, code, id] of cases) {
          yield* connected.publish(topic, payload)
          const reply = yield* connected.take
          assert.deepStrictEqual([reply.message["code"], reply.message["id"]], [code, id], String(payload))
        }
      }))

    it.effect("sends no reply to a device that wants none, nor to topics that have none", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const connected = yield* MqttDevice.connect(device)
        yield* connected.publish(
          connected.topic("thing/event/property/post"),
          `{"id":"quiet","sys":{"ack":0},"params":{"a":1}}`,
          1
        )
        yield* connected.publish(
          connected.topic("thing/service/property/set_reply"),
          `{"id":"1","code":200,"data":{}}`,
          1
        )
        yield* connected.publish(`/ota/device/inform/${device.productKey}/${device.deviceName}`, `{"id":1}`, 1)
        yield* connected.publish(`/${device.productKey}/${device.deviceName}/user/anything`, "text", 1)
        yield* nothingMore(connected)
        assert.deepStrictEqual(yield* CloudState.reported(device), { a: 1, last: 1 })
      }))

    it.effect("keeps devices to their own topics", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const victim = yield* Fixtures.createDevice()
        const connected = yield* MqttDevice.connect(device)
        const { deviceName, productKey } = victim
        const foreign = `/sys/${productKey}/${deviceName}/thing/event/property/post`
        const filters = [
          "#",
          "/#",
          "/sys/+/+/#",
          `/sys/${device.productKey}/+/#`,
          `/sys/${productKey}/${deviceName}/#`,
          "$SYS/#",
          `/ext/ntp/${device.productKey}/${device.deviceName}/response`,
          `/ext/rrpc/+/sys/${device.productKey}/${device.deviceName}/#`,
          `/shadow/get/${device.productKey}/${device.deviceName}`,
          `/${device.productKey}/${device.deviceName}/user/#`
        ]
        assert.deepStrictEqual(yield* connected.subscribe(filters), [128, 128, 128, 128, 128, 128, 1, 1, 1, 1])

        for (let i = 0; i < 9; i++) yield* connected.publish(foreign, `{"id":"1","params":{"stolen":1}}`)
        yield* nothingMore(connected)
        assert.deepStrictEqual(yield* CloudState.reported(victim), {})
        yield* Effect.forkChild(connected.publish(foreign, `{"id":"1","params":{"stolen":1}}`))
        yield* connected.closed
        assert.deepStrictEqual(yield* CloudState.reported(victim), {})
      }))

    it.effect("filters that are longer or deeper than those of any device are refused", () =>
      Effect.gen(function*() {
        const connected = yield* MqttDevice.connect(yield* Fixtures.createDevice())
        const filters = [`x/${"y".repeat(512)}`, "x/".repeat(16), "x/".repeat(11)]
        assert.deepStrictEqual(yield* connected.subscribe(filters.map(connected.topic)), [128, 128, 1])
      }))

    it.effect("a device's filters with wildcards are limited, since each of its topics is compared with all of them", () =>
      Effect.gen(function*() {
        const connected = yield* MqttDevice.connect(yield* Fixtures.createDevice())
        const filters = Array.from({ length: 101 }, (_, i) => connected.topic(`thing/service/s${i}/#`))
        const granted = yield* connected.subscribe(filters, 0)
        assert.deepStrictEqual([granted.slice(0, 100), granted[100]], [Array.from({ length: 100 }, () => 0), 128])
        assert.deepStrictEqual(yield* connected.subscribe([connected.topic("thing/service/s100")]), [1])
        yield* Effect.promise(() => connected.client.unsubscribeAsync(filters[0]!))
        assert.deepStrictEqual(yield* connected.subscribe([filters[100]!]), [1])
      }))

    it.effect("ignores wills and retained messages", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const topic = `/sys/${device.productKey}/${device.deviceName}/thing/event/property/post`
        const will = { topic, payload: Buffer.from(`{"id":"will","params":{"will":1}}`), qos: 1, retain: true } as const
        const first = yield* MqttDevice.connect(device, { options: { will } })
        yield* Effect.callback<void>((resume) => {
          first.client.publish(topic, `{"id":"r","params":{"kept":1}}`, { qos: 1, retain: true }, () =>
            resume(Effect.void))
        })
        first.client.stream.destroy()
        yield* CloudState.untilStatus(device, "offline")
        const second = yield* MqttDevice.connect(device)
        yield* second.subscribe([second.topic("#")])
        yield* nothingMore(second)
        assert.deepStrictEqual(yield* CloudState.reported(device), { kept: 1, last: 1 })
      }))

    it.effect("closes connections that break the protocol, and serves the others", () =>
      Effect.gen(function*() {
        const port = RawMqttSocket.portOf((yield* MqttTestServer).tcp)
        const device = yield* Fixtures.createDevice()
        const publish = generate({ cmd: "publish", topic: "a", payload: "x", qos: 0, dup: false, retain: false })
        const accepted = generate(RawMqttSocket.connectPacket(device))
        const huge = Buffer.concat([Buffer.from([0x30, 0xff, 0xff, 0xff, 0x7f]), Buffer.alloc(400_000)])
        const garbage = [Buffer.from("GET / HTTP/1.1\r\n\r\n"), Buffer.alloc(1000, 0xff), publish, huge]
        for (const bytes of garbage) assert.strictEqual((yield* exchange(port, bytes)).length, 0)
        for (const bytes of [accepted, huge, Buffer.from([0x36, 2, 0, 0])]) {
          // What follows at once may end the connection before the CONNACK is out.
          assert.isAtMost((yield* exchange(port, accepted, bytes)).length, 4)
        }

        const connected = yield* MqttDevice.connect(device)
        yield* connected.post({ a: 1 })
        assert.strictEqual((yield* connected.take).message["code"], 200)
      }))

    it.effect("takes payloads up to 256 KB and closes the connection on larger ones", () =>
      Effect.gen(function*() {
        const device = yield* Fixtures.createDevice()
        const connected = yield* MqttDevice.connect(device)
        const post = (length: number) => {
          const frame = `{"id":"1","params":{},"x":""}`
          return connected.publish(
            connected.topic("thing/event/property/post"),
            frame.replace(`""`, `"${"x".repeat(length - frame.length)}"`)
          )
        }
        yield* post(256 * 1024)
        assert.strictEqual((yield* connected.take).message["code"], 200)
        yield* post(256 * 1024 + 1)
        yield* connected.closed
      }))
  })
}
