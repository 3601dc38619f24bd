import { UplinkRateLimits } from "@device-cloud/core"
import { CloudState } from "@device-cloud/testing"
import { MqttDevice, MqttTestServer, RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { connectNew, setProperty, subscribe } from "./RawPackets.ts"

const boundless = { messages: 1e9, bytes: 1e12 }
const rates = Layer.succeed(UplinkRateLimits, { device: boundless, project: boundless })

const identifierOf = (packet: Parameters<typeof RawMqttSocket.payloadOf>[0]) =>
  packet.cmd === "publish" ? packet.messageId : undefined

layer(Layer.provide(MqttTestServer.layerMemory, rates), { excludeTestServices: true })("packet identifiers", (it) => {
  it.effect(
    "that of a command which is not confirmed is that of no other packet, also when all have been used",
    () =>
      Effect.gen(function*() {
        const { device, wire } = yield* connectNew
        const time = (word: string) => `/ext/ntp/${device.productKey}/${device.deviceName}/${word}`
        const commands = MqttDevice.topicOf(device, "thing/service/property/set")
        yield* wire.write(subscribe(1, [commands, 1], [time("response"), 1]))
        yield* wire.take
        const command = yield* setProperty(device, { a: 1 })
        const identifier = identifierOf(yield* wire.take)
        assert.isAbove(identifier ?? 0, 0)
        const piece = 4369
        const requests = Buffer.concat(
          Array.from({ length: piece }, (_, i) =>
            RawMqttSocket.encode(RawMqttSocket.publish(time("request"), { qos: 1, messageId: i + 1 })))
        )
        for (let sent = 0; sent < 65_535; sent += piece) {
          yield* wire.write(requests)
          // Each request gets a PUBACK and a reply.
          const replies = (yield* wire.takeN(2 * piece)).map(identifierOf).filter((id) =>
            id !== undefined
          )
          assert.lengthOf(replies, piece)
          assert.notInclude(replies, identifier)
        }
        yield* wire.write({ cmd: "puback", messageId: identifier! })
        yield* CloudState.untilState(command, "acked")
      }),
    60_000
  )
})
