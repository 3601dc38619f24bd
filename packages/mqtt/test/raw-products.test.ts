import { Codecs, Commands, CommandStore, defaultProjectId, type Device } from "@device-cloud/core"
import { CloudState, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { storages } from "../../../vitest.storages.ts"

const framed = (...parts: ReadonlyArray<unknown>) => [...parts, { type: "checksum", algorithm: "xor8" }]

const codec = {
  reports: [
    {
      method: "thing.event.property.post",
      parts: framed({ type: "constant", hex: "01" }, { type: "uint", size: 1, to: "id" }, {
        type: "uint",
        size: 1,
        to: "params.level"
      })
    },
    {
      method: "thing.event.alarm.post",
      parts: framed({ type: "constant", hex: "02" }, { type: "uint", size: 2, to: "params.code" })
    }
  ],
  receipts: [{
    parts: framed({ type: "constant", hex: "81" }, { type: "uint", size: 1, to: "id" }, {
      type: "uint",
      size: 1,
      to: "code",
      labels: { 0: 200 },
      otherwise: 1
    })
  }],
  commands: [
    {
      method: "thing.service.property.set",
      parts: framed({ type: "constant", hex: "03" }, { type: "uint", size: 1, to: "id" }, {
        type: "uint",
        size: 1,
        to: "params.level"
      })
    },
    {
      method: "thing.service.reset",
      parts: framed({ type: "constant", hex: "04" }, { type: "uint", size: 1, to: "params.hard" })
    }
  ],
  answers: [
    {
      method: "thing.service.property.set",
      parts: framed({ type: "constant", hex: "83" }, { type: "uint", size: 1, to: "id" }, {
        type: "uint",
        size: 1,
        to: "code",
        labels: { 0: 200 }
      })
    },
    {
      method: "thing.service.reset",
      parts: framed({ type: "constant", hex: "84" }, { type: "uint", size: 1, to: "data.left" })
    }
  ]
}

const frame = (...bytes: ReadonlyArray<number>) => Buffer.from([...bytes, bytes.reduce((sum, byte) => sum ^ byte, 0)])

const newDevice = Effect.fnUntraced(function*(description?: object) {
  const product = yield* Fixtures.createProductWithModel(Fixtures.thingModel, { dataFormat: "raw" })
  if (description !== undefined) yield* (yield* Codecs).put(defaultProjectId, product.productKey, description)
  return yield* Fixtures.createDevice(product)
})

/** Connects a device. `next`: the next bytes that it receives, as `topic hex`. */
const connect = Effect.fnUntraced(function*(device: Device) {
  const connected = yield* MqttDevice.connect(device)
  const next = Effect.map(
    Effect.repeat(connected.take, { until: ({ topic }) => topic.includes("/thing/model/") }),
    ({ message: { payload }, topic }) => `${topic.slice(connected.topic("").length)} ${payload.toString("hex")}`
  )
  const say = (rest: string, payload: Buffer) => connected.publish(connected.topic(`thing/model/${rest}`), payload, 1)
  return { ...connected, next, say }
})

const hex = (bytes: Buffer) => bytes.toString("hex")

for (const [name, storage] of storages) {
  layer(MqttTestServer.layer(storage), { excludeTestServices: true })(`raw products on ${name}`, (it) => {
    it.effect("bytes become reports, and their receipts are bytes", () =>
      Effect.gen(function*() {
        const device = yield* newDevice(codec)
        const connected = yield* connect(device)
        yield* connected.say("up_raw", frame(1, 9, 5))
        assert.strictEqual(yield* connected.next, `thing/model/up_raw_reply ${hex(frame(0x81, 9, 0))}`)
        assert.deepStrictEqual(yield* CloudState.reported(device), { level: 5 })
        yield* connected.say("up_raw", frame(2, 1, 0))
        // The alarm has no id, so the receipt does not fit and the reply is JSON.
        const [topic, json] = (yield* connected.next).split(" ")
        assert.strictEqual(topic, "thing/model/up_raw_reply")
        assert.deepInclude(JSON.parse(Buffer.from(json!, "hex").toString()), { code: 200 })
        assert.deepStrictEqual(
          (yield* CloudState.events(device)).map(({ eventId, value }) => [eventId, value]),
          [["alarm", { code: 256 }]]
        )
        yield* connected.say("up_raw", Buffer.from([1, 9, 5, 0]))
        const [, refused] = (yield* connected.next).split(" ")
        assert.deepInclude(JSON.parse(Buffer.from(refused!, "hex").toString()), {
          code: 26_002,
          message: "the codec does not fit: reports[0].parts[3]: expected the checksum 0d, not 00"
        })
        assert.strictEqual((yield* CloudState.events(device)).length, 1)
      }))

    it.effect("many reports at once keep their order", () =>
      Effect.gen(function*() {
        const device = yield* newDevice(codec)
        const connected = yield* connect(device)
        const levels = [...Array.from({ length: 50 }, (_, i) => i % 10), 7]
        for (const level of levels) connected.client.publish(connected.topic("thing/model/up_raw"), frame(1, 1, level))
        for (const _ of levels) yield* connected.next
        assert.deepStrictEqual(yield* CloudState.samples(device, "level"), levels)
        assert.deepStrictEqual(yield* CloudState.reported(device), { level: 7 })
      }))

    it.effect("commands leave as bytes, and bytes end them", () =>
      Effect.gen(function*() {
        const commands = yield* Commands
        const device = yield* newDevice(codec)
        const { deviceId } = device
        const waiting = yield* commands.setProperties(defaultProjectId, deviceId, { level: 3 })
        const connected = yield* connect(device)
        const command = Effect.map(
          Effect.repeat(connected.next, { until: (message) => message.startsWith("thing/model/down_raw ") }),
          (message) => message.split(" ")[1]
        )
        assert.strictEqual(yield* command, hex(frame(3, waiting.messageId % 256, 3)))
        yield* connected.say("down_raw_reply", frame(0x83, waiting.messageId % 256, 0))
        assert.deepInclude(yield* CloudState.untilState(waiting, "succeeded"), { code: 200 })
        const failing = yield* commands.setProperties(defaultProjectId, deviceId, { level: 4 })
        const other = yield* commands.setProperties(defaultProjectId, deviceId, { level: 5 })
        assert.strictEqual(yield* command, hex(frame(3, failing.messageId % 256, 4)))
        assert.strictEqual(yield* command, hex(frame(3, other.messageId % 256, 5)))
        yield* connected.say("down_raw_reply", frame(0x83, other.messageId % 256, 0))
        yield* connected.say("down_raw_reply", frame(0x83, failing.messageId % 256, 7))
        yield* CloudState.untilState(other, "succeeded")
        assert.deepInclude(yield* CloudState.untilState(failing, "failed"), { code: 7 })
        const first = yield* commands.callService(defaultProjectId, deviceId, "reset", { hard: 1 })
        const second = yield* commands.callService(defaultProjectId, deviceId, "reset", { hard: 0 })
        assert.strictEqual(yield* command, hex(frame(4, 1)))
        assert.strictEqual(yield* command, hex(frame(4, 0)))
        yield* connected.say("down_raw_reply", frame(0x84, 60))
        yield* connected.say("down_raw_reply", frame(0x84, 61))
        assert.deepInclude(yield* CloudState.untilState(first, "succeeded"), { code: 200, data: { left: 60 } })
        assert.deepInclude(yield* CloudState.untilState(second, "succeeded"), { data: { left: 61 } })
        // Nothing waits for this one.
        yield* connected.say("down_raw_reply", frame(0x84, 62))
        assert.deepStrictEqual((yield* CloudState.events(device, "raw_reply")).map(({ value }) => value), [
          hex(frame(0x84, 62))
        ])
      }))

    it.effect("bytes end a command that many others have overtaken", () =>
      Effect.gen(function*() {
        const commands = yield* Commands
        const device = yield* newDevice(codec)
        const { deviceId } = device
        const overtaken = yield* commands.setProperties(defaultProjectId, deviceId, { level: 3 })
        const connected = yield* connect(device)
        const store = yield* CommandStore
        yield* CloudState.untilState(overtaken, "acked")
        for (let i = 0; i < 210; i++) {
          const { messageId } = yield* commands.sendRaw(defaultProjectId, deviceId, "00")
          yield* store.advance([{ deviceId, messageId, state: "succeeded", code: null, message: "", data: {}, at: 0 }])
        }
        yield* connected.say("down_raw_reply", frame(0x83, overtaken.messageId % 256, 0))
        assert.deepStrictEqual(yield* CloudState.events(device, "raw_reply"), [])
        // Storage in memory forgets it when it ends: it is none of the latest 100.
        const open = store.unfinished({ deviceId, after: 0, now: 0, limit: 1 })
        yield* Effect.repeat(Effect.delay(open, 10), { until: (commands) => commands.length === 0 })
      }))

    it.effect("a call that the codec cannot write is refused before it is stored", () =>
      Effect.gen(function*() {
        const commands = yield* Commands
        const { deviceId } = yield* newDevice(codec)
        const refused = yield* Effect.flip(
          commands.setProperties(defaultProjectId, deviceId, { level: 1, power: 1 })
        )
        assert.deepInclude(refused, {
          _tag: "InvalidValues",
          issues: [{ path: ["params", "power"], message: "no part of the description carries it" }]
        })
        assert.strictEqual((yield* (yield* CommandStore).list(deviceId, { page: 1, pageSize: 10 })).total, 0)
      }))

    it.effect("a command whose codec has changed meanwhile fails with the reason", () =>
      Effect.gen(function*() {
        const device = yield* newDevice(codec)
        const command = yield* (yield* Commands).setProperties(defaultProjectId, device.deviceId, { level: 3 })
        yield* (yield* Codecs).put(defaultProjectId, device.productKey, { reports: [] })
        yield* connect(device)
        assert.include(
          (yield* CloudState.untilState(command, "failed")).message,
          "the codec does not fit: method: the description has none of the commands for thing.service.property.set"
        )
      }))

    it.effect("without a codec, bytes are events, and an application sends bytes as they are", () =>
      Effect.gen(function*() {
        const device = yield* newDevice()
        const connected = yield* connect(device)
        yield* connected.say("up_raw", Buffer.from("00ff10", "hex"))
        assert.match(yield* connected.next, /^thing\/model\/up_raw_reply 7b22/)
        const command = yield* (yield* Commands).sendRaw(defaultProjectId, device.deviceId, "A10700")
        assert.strictEqual(yield* connected.next, "thing/model/down_raw a10700")
        yield* CloudState.untilState(command, "succeeded")
        yield* connected.say("down_raw_reply", Buffer.from("a100", "hex"))
        assert.deepStrictEqual(
          (yield* CloudState.events(device)).map(({ eventId, value }) => [eventId, value]),
          [["raw", "00ff10"], ["raw_reply", "a100"]]
        )
      }))
  })
}
