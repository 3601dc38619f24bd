/**
 * A TCP connection to a broker, byte by byte: a test writes whatever it wants,
 * and reads MQTT packets.
 */
import { type Cause, Effect, Queue, type Scope } from "effect"
import { generate, type IConnectPacket, type IPublishPacket, type Packet, parser } from "mqtt-packet"
import { connect as connectTcp, type Socket } from "node:net"
import { credentials, type DeviceTriple, type Message, topicOf } from "./MqttDevice.ts"
import { type Endpoint, MqttTestServer } from "./MqttTestServer.ts"

/** An open connection. */
export interface RawMqttSocket {
  /** The socket beneath. */
  readonly socket: Socket
  /** Sends all parts in one piece. */
  readonly write: (...parts: ReadonlyArray<Packet | Uint8Array>) => Effect.Effect<void>
  /** The next packet; undefined: the connection has ended. */
  readonly next: Effect.Effect<Packet | undefined>
  /** The next packet. Dies if the connection has ended. */
  readonly take: Effect.Effect<Packet>
  /** The next packets, that many. Dies if the connection has ended. */
  readonly takeN: (count: number) => Effect.Effect<ReadonlyArray<Packet>>
  /** All packets that come until the connection ends. */
  readonly rest: Effect.Effect<ReadonlyArray<Packet>>
}

/** What a connection starts from. */
export interface SocketOptions {
  /** A loopback address of this machine. Default: the system's choice. */
  readonly localAddress?: string | undefined
}

/** The bytes of a packet; bytes stay as they are. */
export const encode = (part: Packet | Uint8Array): Uint8Array => part instanceof Uint8Array ? part : generate(part)

/** A TCP port on 127.0.0.1. */
export const portOf = ({ url }: Endpoint): number => Number(new URL(url).port)

const ended = Effect.die(new Error("The connection has ended"))

/** Opens a connection to any broker on 127.0.0.1; it ends with the scope at the latest. Fails if nobody listens. */
export const openTo = Effect.fnUntraced(function*(
  endpoint: Endpoint,
  { localAddress }: SocketOptions = {}
): Effect.fn.Return<RawMqttSocket, Error, Scope.Scope> {
  const packets = yield* Queue.unbounded<Packet, Cause.Done>()
  const socket = yield* Effect.acquireRelease(
    Effect.callback<Socket, Error>((resume) => {
      const from = localAddress === undefined ? {} : { localAddress }
      const socket = connectTcp({ port: portOf(endpoint), host: "127.0.0.1", noDelay: true, ...from })
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

/** {@link openTo} the {@link MqttTestServer} over TCP. */
export const open = (
  options: SocketOptions = {}
): Effect.Effect<RawMqttSocket, Error, MqttTestServer | Scope.Scope> =>
  MqttTestServer.use(({ tcp }) => openTo(tcp, options))

/** A CONNECT with the right credentials, a clean session and no limit to silence. */
export const connectPacket = (device: DeviceTriple, fields: Partial<IConnectPacket> = {}): IConnectPacket => {
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

/** Connects a device to the {@link MqttTestServer} over TCP; the CONNACK has been read. Dies if it is refused. */
export const connect = Effect.fnUntraced(function*(device: DeviceTriple, fields: Partial<IConnectPacket> = {}) {
  const socket = yield* open()
  yield* socket.write(connectPacket(device, fields))
  const connack = yield* socket.take
  if (connack.cmd !== "connack" || connack.returnCode !== 0) {
    return yield* Effect.die(new Error(`Not connected: ${JSON.stringify(connack)}`))
  }
  return { ...socket, sessionPresent: connack.sessionPresent }
})

/** A PUBLISH. Default: QoS 0, payload `{}`, not retained, no duplicate. */
export const publish = (topic: string, fields: Partial<IPublishPacket> = {}): IPublishPacket => ({
  cmd: "publish",
  topic,
  payload: "{}",
  qos: 0,
  dup: false,
  retain: false,
  ...fields
})

/** A report of properties. It asks for no reply unless it has an `id`. */
export const post = (
  device: DeviceTriple,
  params: Readonly<Record<string, unknown>>,
  { id, ...fields }: Partial<IPublishPacket> & { readonly id?: string } = {}
): IPublishPacket =>
  publish(topicOf(device, "thing/event/property/post"), {
    payload: JSON.stringify({ id, params, ...id === undefined && { sys: { ack: 0 } } }),
    ...fields
  })

/** What a PUBLISH carries, decoded from JSON; of other packets `{}`. */
export const payloadOf = (packet: Packet): Message =>
  packet.cmd === "publish" ? JSON.parse(packet.payload.toString()) : {}
