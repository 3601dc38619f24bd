/**
 * Reads the packets of a client at the pace at which they are handled.
 */
import type { Client } from "aedes"
import type { Duplex } from "node:stream"
import { PacketEngine } from "./AedesInternals.ts"
import { isText, keepsToProtocol, type Packet, unacceptableProtocolLevel } from "./Packet.ts"
import { takeWhole } from "./WholePackets.ts"

/** What a connection wants to know and decide while its packets are read. */
export interface ReadingOptions {
  /** Bytes; a packet that is larger ends the connection before it is in memory as a whole. */
  readonly maxPacketBytes: number
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

  const read = () => {
    while (!(heldBack = !mayRead())) {
      const bytes = stream.read() as Buffer | null
      if (bytes === null) return
      const taken = betweenPackets ? takeWhole(bytes, whole) : 0
      if (taken === bytes.length) continue
      const kept = engine.parse(taken === 0 ? bytes : bytes.subarray(taken))
      if (kept > options.maxPacketBytes) client.emit("error", new Error("packet too large"))
      betweenPackets = kept === 0 && engine.isBetweenPackets
    }
  }

  const onPacket = (packet: Packet) => {
    if (packet.bridgeMode === true) {
      engine.stop()
      stream.end(unacceptableProtocolLevel)
      stream.resume()
      return
    }
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
