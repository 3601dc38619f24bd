import { type Device, UplinkRateLimits } from "@device-cloud/core"
import { CloudState, eventually, Fixtures } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { storages } from "../../../vitest.storages.ts"

const createProduct = Fixtures.createProduct({ validateType: "none" })

/** A device has a burst of 20 messages or 200 kB, a project one of 60 messages. */
const rates = Layer.succeed(UplinkRateLimits, {
  device: { messages: 10, bytes: 100_000 },
  project: { messages: 30, bytes: 1_000_000 }
})

const numbers = (count: number) => Array.from({ length: count }, (_, i) => i)

/** Posts in one piece, which differ in time and id. */
const posts = (device: Device, count: number, fields: { readonly text?: string; readonly qos?: 1 } = {}) =>
  numbers(count).map((i) =>
    RawMqttSocket.post(device, { n: { value: fields.text ?? i, time: i + 1 } }, {
      id: String(i),
      ...fields.qos === 1 && { qos: 1, messageId: i + 1 }
    })
  )

const codesIn = (packets: ReadonlyArray<Parameters<typeof RawMqttSocket.payloadOf>[0]>) =>
  packets.filter(({ cmd }) => cmd === "publish").map((packet): number => RawMqttSocket.payloadOf(packet)["code"])

for (const [name, storage] of storages) {
  layer(Layer.provide(MqttTestServer.layer(storage), rates), { excludeTestServices: true })(
    `rates of MQTT devices on ${name}`,
    (it) => {
      it.effect("above its rate a device gets 429, nothing of that is stored, and every packet is confirmed", () =>
        Effect.gen(function*() {
          const device = yield* Fixtures.createDevice(yield* createProduct)
          const socket = yield* RawMqttSocket.connect(device)
          yield* socket.write(...posts(device, 30, { qos: 1 }))
          const packets = yield* socket.takeN(60)
          assert.lengthOf(packets.filter(({ cmd }) => cmd === "puback"), 30)
          const codes = codesIn(packets)
          const stored = codes.filter((code) => code === 200).length
          // The burst, and what the rate admits while the rest is read slower.
          assert.isAtLeast(stored, 20)
          assert.isAtLeast(codes.filter((code) => code === 429).length, 1)
          assert.lengthOf(yield* CloudState.samples(device, "n"), stored)
        }))

      it.effect("bytes count as well", () =>
        Effect.gen(function*() {
          const device = yield* Fixtures.createDevice(yield* createProduct)
          const socket = yield* RawMqttSocket.connect(device)
          yield* socket.write(...posts(device, 5, { text: "x".repeat(90_000) }))
          const codes = codesIn(yield* socket.takeN(5))
          assert.includeMembers(codes, [200, 429])
        }))

      it.effect("messages without a reply are read slower and none is lost", () =>
        Effect.gen(function*() {
          const device = yield* Fixtures.createDevice(yield* createProduct)
          const socket = yield* RawMqttSocket.connect(device)
          const silent = numbers(30).map((i) =>
            RawMqttSocket.post(device, { n: { value: i, time: i + 1 } }, { qos: 1, messageId: i + 1 })
          )
          yield* socket.write(...silent)
          const confirmed = yield* socket.takeN(30)
          assert.isTrue(confirmed.every(({ cmd }) => cmd === "puback"))
          assert.deepStrictEqual(yield* CloudState.samples(device, "n"), numbers(30))
          // The connection is read again when the device may send again.
          yield* socket.write({ cmd: "pingreq" })
          assert.strictEqual((yield* socket.take).cmd, "pingresp")
        }))

      it.effect("one device above its rate leaves others alone, and has its own rate when it waits", () =>
        Effect.gen(function*() {
          const product = yield* createProduct
          const [loud, quiet] = [yield* Fixtures.createDevice(product), yield* Fixtures.createDevice(product)]
          const socket = yield* RawMqttSocket.connect(loud)
          const bystander = yield* MqttDevice.connect(quiet)
          const say = Effect.map(
            bystander.request(bystander.topic("thing/event/property/post"), { n: 1 }),
            ({ code }) => code as number
          )
          yield* socket.write(...posts(loud, 30))
          assert.include(codesIn(yield* socket.takeN(30)), 429)
          assert.strictEqual(yield* eventually(say, { until: (code) => code === 200 }), 200)
          const again = Effect.gen(function*() {
            yield* socket.write(RawMqttSocket.post(loud, { n: 7 }, { id: "again" }))
            return codesIn([yield* socket.take])[0]
          })
          assert.strictEqual(yield* eventually(again, { until: (code) => code === 200 }), 200)
        }))
    }
  )
}
