/**
 * Reads the packets of a client at the pace at which they are handled.
 */
import type { Client } from "aedes"
import type { Duplex } from "node:stream"
import { PacketEngine } from "./AedesInternals.ts"
import {
  isText,
  keepsToProtocol,
  type Packet,
  unacceptableProtocolLevel,
  unsupportedProtocolVersion
} from "./Packet.ts"
import { takeWhole } from "./WholePackets.ts"

/** What a connection wants to know and decide while its packets are read. */
export interface ReadingOptions {
  /** Bytes; a packet that is larger ends the connection before it is in memory as a whole. */
  readonly maxPacketBytes: number
  /** Bytes that are read before the CONNECT is complete; more end the connection. */
  readonly maxArrivalBytes: number
  /** Before the CONNACK the connection holds so many bytes. */
  readonly onArriving: (bytes: number) => void
  /** Whether another packet may be read. `handling`: packets of this client that are being handled. */
  readonly mayRead: (handling: number) => boolean
  /** The client has sent DISCONNECT. */
  readonly onDisconnect: () => void
  /** The client has confirmed a QoS 1 packet. */
  readonly onAcknowledge: (packetId: number) => void
}

/**
 * Reads from the connection of the client only while `mayRead` allows it.
 * Returns a function that the caller calls when `mayRead` may have changed.
 *
 * After DISCONNECT it reads nothing more and lets the client close the
 * connection. Aedes cuts the connection at once, which looks like a reset over
 * TLS.
 */
export const readPackets = (client: Client, stream: Duplex, options: ReadingOptions): () => void => {
  // Until the CONNACK only one packet is handled at a time.
  const mayRead = () =>
    !engine.isPaused && !client.closed && (client.connected || engine.handling === 0) &&
    options.mayRead(engine.handling)

  const onAcknowledge = (packetId: number) => {
    // Aedes has sent nothing that waits for a PUBACK: it need not see it.
    engine.refreshKeepAlive()
    options.onAcknowledge(packetId)
  }

  const violated = () => void client.emit("error", new Error("protocol violation"))

  const whole = {
    onPublish: (packet: Parameters<PacketEngine["handle"]>[0]) =>
      isText(packet.topic) ? engine.handle(packet) : violated(),
    onAcknowledge,
    mayGoOn: () => client.connected && !client.closed && !engine.hasDisconnected
  }

  /** Whether the next byte begins a packet. */
  let betweenPackets = true
  /** Whether the stream may hold bytes that were not read. */
  let heldBack = false
  /** Bytes that were read before the CONNACK. */
  let arrived = 0

  /** Leaves in the stream what it need not read before the CONNACK. */
  const readArriving = (): Buffer | null => {
    const room = options.maxArrivalBytes - arrived
    if (room <= 0) {
      client.emit("error", new Error("too many bytes before the CONNECT"))
      return null
    }
    const bytes = stream.read(Math.min(room, stream.readableLength) || undefined) as Buffer | null
    arrived += bytes?.length ?? 0
    options.onArriving(arrived + stream.readableLength)
    return bytes
  }

  const read = () => {
    while (!(heldBack = !mayRead())) {
      const bytes = client.connected ? stream.read() as Buffer | null : readArriving()
      if (bytes === null) return
      const taken = betweenPackets ? takeWhole(bytes, whole) : 0
      if (taken === bytes.length) continue
      const kept = engine.parse(taken === 0 ? bytes : bytes.subarray(taken))
      if (kept > options.maxPacketBytes) client.emit("error", new Error("packet too large"))
      betweenPackets = kept === 0 && engine.isBetweenPackets
    }
  }

  /** Lets the client read why, and close the connection. */
  const refuse = (connack: Buffer) => {
    engine.stop()
    stream.end(connack)
    stream.resume()
  }

  const onPacket = (packet: Packet) => {
    if (packet.bridgeMode === true) return refuse(unacceptableProtocolLevel)
    if (packet.protocolVersion === 5 && !client.connected) return refuse(unsupportedProtocolVersion)
    if (!keepsToProtocol(packet)) return violated()
    if (packet.cmd === "puback" && client.connected) return onAcknowledge(packet.messageId ?? 0)
    if (packet.cmd !== "disconnect" || !client.connected) return engine.handle(packet)
    engine.disconnected()
    stream.removeListener("readable", read)
    stream.end()
    stream.resume()
    options.onDisconnect()
  }

  const engine = new PacketEngine(client, stream, {
    onPacket,
    onUnreadable: ({ message }) => {
      // These are the words of mqtt-packet.
      if (message === "Invalid protocol version") stream.write(unacceptableProtocolLevel)
    },
    onHandled: () => {
      if (heldBack) read()
    }
  })
  stream.on("readable", read)
  return read
}
