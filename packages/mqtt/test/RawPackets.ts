/**
 * Packets of MQTT 3.1.1, well formed and not, on raw connections.
 */
import { Commands, defaultProjectId, type Device } from "@device-cloud/core"
import { CloudState, Fixtures } from "@device-cloud/testing"
import { RawMqttSocket } from "@device-cloud/testing/mqtt"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { IConnectPacket, ISubscribePacket, IUnsubscribePacket, Packet } from "mqtt-packet"

/** A connection of a new device. */
export const connectNew = Effect.gen(function*() {
  const device = yield* Fixtures.createDevice()
  return { device, wire: yield* RawMqttSocket.connect(device) }
})

/** Sets properties of a device. Returns the command. */
export const setProperty = ({ deviceId }: Device, params: Readonly<Record<string, number>>) =>
  Effect.flatMap(Commands, (commands) => commands.setProperties(defaultProjectId, deviceId, params))

/** Ends the connection without a word. */
export const cut = Effect.fnUntraced(function*(device: Device, { socket }: RawMqttSocket.RawMqttSocket) {
  socket.destroy()
  yield* CloudState.untilStatus(device, "offline")
})

export const ping: Packet = { cmd: "pingreq" }

/** A SUBSCRIBE. */
export const subscribe = (
  messageId: number,
  ...topics: ReadonlyArray<readonly [topic: string, qos: 0 | 1 | 2]>
): ISubscribePacket => ({
  cmd: "subscribe",
  messageId,
  subscriptions: topics.map(([topic, qos]) => ({ topic, qos }))
})

/** An UNSUBSCRIBE. */
export const unsubscribe = (messageId: number, ...unsubscriptions: Array<string>): IUnsubscribePacket => ({
  cmd: "unsubscribe",
  messageId,
  unsubscriptions
})

/** A connection that has answered so often is not about to be closed. */
export const maxAnswers = 20

/** Sends bytes, and waits for the end of the connection. Returns what came back until then. */
export const closedBy = Effect.fnUntraced(
  function*(wire: RawMqttSocket.RawMqttSocket, ...parts: ReadonlyArray<Packet | Uint8Array>) {
    const received: Array<Packet> = []
    yield* wire.write(...parts, ping)
    while (received.filter(({ cmd }) => cmd === "pingresp").length < maxAnswers) {
      const packet = yield* wire.next
      if (packet === undefined) return received
      received.push(packet)
      if (packet.cmd === "pingresp") yield* wire.write(ping)
    }
    return assert.fail("The connection is still open")
  }
)

export type Bytes = Uint8Array | ReadonlyArray<number>

export const join = (...parts: ReadonlyArray<Bytes>) => Buffer.concat(parts.map((part) => Uint8Array.from(part)))

/** A packet with a body of less than 128 bytes. */
export const packet = (firstByte: number, ...body: ReadonlyArray<Bytes>): Buffer => {
  const bytes = join(...body)
  return join([firstByte, bytes.length], bytes)
}

export const bytesOf = (value: string): Bytes => Buffer.from(value)

/** With its length before it. */
export const text = (value: Bytes): Buffer => join([value.length >> 8, value.length & 0xff], value)

/** The CONNECT with another protocol level, or other flags. */
export const altered = (
  connect: IConnectPacket,
  change: { readonly level?: number; readonly flags?: (was: number) => number }
): Buffer => {
  const bytes = Buffer.from(RawMqttSocket.encode(connect))
  const name = bytes.indexOf(connect.protocolId ?? "MQTT")
  const levelAt = name + (connect.protocolId ?? "MQTT").length
  bytes[levelAt] = change.level ?? bytes[levelAt]!
  bytes[levelAt + 1] = change.flags?.(bytes[levelAt + 1]!) ?? bytes[levelAt + 1]!
  return bytes
}

/** Of the connect flags. */
export const cleanSessionFlag = 0x02
