/**
 * A device byte by byte: it writes whatever a test wants, and reads MQTT packets.
 */
import type { Device } from "@device-cloud/core"
import { type Cause, Effect, Queue, type Scope } from "effect"
import { generate, type IConnectPacket, type IPublishPacket, type Packet, parser } from "mqtt-packet"
import { connect as connectTcp, type Socket } from "node:net"
import { credentials, type Triple } from "./TestDevice.ts"

export interface WireDevice {
  readonly socket: Socket
  /** Sends all of it in one piece. */
  readonly write: (...parts: ReadonlyArray<Packet | Uint8Array>) => Effect.Effect<void>
  /** The next packet; undefined: the connection has ended. */
  readonly next: Effect.Effect<Packet | undefined>
  /** The next packet, of a connection that must not have ended. */
  readonly take: Effect.Effect<Packet>
  readonly takeN: (count: number) => Effect.Effect<ReadonlyArray<Packet>>
  /** All that comes until the connection ends. */
  readonly rest: Effect.Effect<ReadonlyArray<Packet>>
}

export const encode = (part: Packet | Uint8Array): Uint8Array => part instanceof Uint8Array ? part : generate(part)

export const portOf = (url: string): number => Number(new URL(url).port)

const ended = Effect.die(new Error("The connection has ended"))

/** A TCP connection to the broker, which ends with the scope at the latest. */
export const open = Effect.fnUntraced(function*(
  port: number,
  localAddress?: string
): Effect.fn.Return<WireDevice, Error, Scope.Scope> {
  const packets = yield* Queue.unbounded<Packet, Cause.Done>()
  const socket = yield* Effect.acquireRelease(
    Effect.callback<Socket, Error>((resume) => {
      const socket = connectTcp({ port, host: "127.0.0.1", noDelay: true, ...localAddress && { localAddress } })
      socket.once("connect", () => resume(Effect.succeed(socket)))
      socket.on("error", (error) => resume(Effect.fail(error)))
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )
  const reader = parser({ protocolVersion: 4 })
  reader.on("packet", (packet) => Queue.offerUnsafe(packets, packet))
  socket.on("data", (bytes) => reader.parse(bytes as Buffer))
  socket.once("close", () => Queue.endUnsafe(packets))
  return {
    socket,
    write: (...parts) => Effect.sync(() => void socket.write(Buffer.concat(parts.map(encode)))),
    next: Effect.catchTag(Queue.take(packets), "Done", () => Effect.undefined),
    take: Effect.catchTag(Queue.take(packets), "Done", () => ended),
    takeN: (count) => Effect.catchTag(Queue.takeN(packets, count), "Done", () => ended),
    rest: Queue.collect(packets)
  }
})

/** A CONNECT with the right credentials, a clean session and no limit to silence. */
export const connectPacket = (device: Triple, fields: Partial<IConnectPacket> = {}): IConnectPacket => {
  const { password, ...names } = credentials(device)
  return {
    cmd: "connect",
    protocolId: "MQTT",
    protocolVersion: 4,
    clean: true,
    keepalive: 0,
    ...names,
    password: Buffer.from(password),
    ...fields
  }
}

/** Connects the device; the CONNACK has been read. */
export const connect = Effect.fnUntraced(function*(
  port: number,
  device: Triple,
  fields: Partial<IConnectPacket> = {},
  localAddress?: string
) {
  const wire = yield* open(port, localAddress)
  yield* wire.write(connectPacket(device, fields))
  const connack = yield* wire.take
  if (connack.cmd !== "connack" || connack.returnCode !== 0) {
    return yield* Effect.die(new Error(`Not connected: ${JSON.stringify(connack)}`))
  }
  return { ...wire, sessionPresent: connack.sessionPresent }
})

export const topicOf = ({ deviceName, productKey }: Pick<Device, "productKey" | "deviceName">, rest: string): string =>
  `/sys/${productKey}/${deviceName}/${rest}`

/** A report of properties, to which no reply is wanted unless it has an `id`. */
export const post = (
  device: Triple,
  params: Readonly<Record<string, unknown>>,
  { id, ...fields }: Partial<IPublishPacket> & { readonly id?: string } = {}
): IPublishPacket => ({
  cmd: "publish",
  topic: topicOf(device, "thing/event/property/post"),
  payload: JSON.stringify({ id, params, ...id === undefined && { sys: { ack: 0 } } }),
  qos: 0,
  dup: false,
  retain: false,
  ...fields
})

/** What a packet carries, as JSON. */
export const payloadOf = (packet: Packet): Record<string, unknown> =>
  packet.cmd === "publish" ? JSON.parse(packet.payload.toString()) : {}
