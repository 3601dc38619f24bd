/**
 * Reads the packets of a client at the pace at which they are handled, and in
 * turns with other clients.
 */
import type { Turns } from "@device-cloud/core"
import type { Client } from "aedes"
import type { Duplex } from "node:stream"
import { keepSubscriptions, PacketEngine } from "./AedesInternals.ts"
import {
  isText,
  keepsToProtocol,
  type Packet,
  unacceptableProtocolLevel,
  unsupportedProtocolVersion
} from "./Packet.ts"
import { takeWhole } from "./WholePackets.ts"

/** Packets that are handled between two looks at the clock. */
const packetsOfLook = 16
/** Bytes that aedes parses between two looks at the clock; all packets in them are handled. */
const bytesOfLook = 2048
/** Bytes that are read at a time: a stream from which everything is taken buffers as much again. */
const pieceBytes = 8192

/** What a connection wants to know and decide while its packets are read. */
export interface ReadingOptions {
  /** Bytes; a packet that is larger ends the connection before it is in memory as a whole. */
  readonly maxPacketBytes: number
  /** Bytes that are read before the CONNECT is complete; more end the connection. */
  readonly maxArrivalBytes: number
  /** Before the CONNACK the connection holds so many bytes. */
  readonly onArriving: (bytes: number) => void
  /** Whether another packet may be read. */
  readonly mayRead: () => boolean
  /** Packets of this client that are handled at once. */
  readonly maxHandling: number
  /** The turns of all connections. */
  readonly turns: Turns
  /** Whose turns the client takes: the group, and the key in it. */
  readonly owner: () => readonly [group: string, key: string]
  /** The client has sent DISCONNECT. */
  readonly onDisconnect: () => void
  /** The client has confirmed a QoS 1 packet. */
  readonly onAcknowledge: (packetId: number) => void
}

/** The reading of one connection. */
export interface PacketReading {
  /** Reads on; to be called when `mayRead` may have changed. */
  readonly read: () => void
  /** Returns how many packets that were read are not handled to their end. */
  readonly underway: () => number
}

/**
 * Reads from the connection of the client only while `mayRead` allows it.
 *
 * After DISCONNECT it reads nothing more and lets the client close the
 * connection. Aedes cuts the connection at once, which looks like a reset over
 * TLS.
 */
export const readPackets = (client: Client, stream: Duplex, options: ReadingOptions): PacketReading => {
  // Until the CONNACK only one packet is handled at a time.
  const mayRead = () =>
    !engine.isPaused && !client.closed && engine.handling < (client.connected ? options.maxHandling : 1) &&
    options.mayRead()

  const onAcknowledge = (packetId: number) => {
    // Aedes has sent nothing that waits for a PUBACK: it need not see it.
    engine.refreshKeepAlive()
    options.onAcknowledge(packetId)
  }

  const violated = () => void client.emit("error", new Error("protocol violation"))

  let packets = 0
  /** Whether the reader stopped before a packet that it may not read yet. */
  let stopped = false

  const whole = {
    onPublish: (packet: Parameters<PacketEngine["handle"]>[0]) =>
      isText(packet.topic) ? engine.handle(packet) : violated(),
    onAcknowledge,
    mayGoOn: () => {
      if (!client.connected || engine.hasDisconnected) return false
      stopped = !mayRead() || (++packets % packetsOfLook === 0 && !options.turns.hasTime())
      return !stopped
    }
  }

  /** Whether the next byte begins a packet. */
  let betweenPackets = true
  /** Whether the stream may hold bytes that were not read. */
  let heldBack = false
  /** Whether the client waits for its turn. */
  let isWaiting = false
  /** Whether a piece is read: what it leaves goes back before another one is read. */
  let isReading = false
  /** Bytes that were read before the CONNACK. */
  let arrived = 0

  const readPiece = (): Buffer | null => stream.read(Math.min(pieceBytes, stream.readableLength) || undefined)

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

  /** Handles packets at the start of `bytes`. Returns how many bytes it has handled. */
  const handle = (bytes: Buffer): number => {
    stopped = false
    const taken = betweenPackets ? takeWhole(bytes, whole) : 0
    // What aedes has to parse begins the next piece.
    if (taken > 0 || stopped) return taken
    const end = Math.min(bytesOfLook, bytes.length)
    const kept = engine.parse(bytes.subarray(0, end))
    if (kept > options.maxPacketBytes) client.emit("error", new Error("packet too large"))
    betweenPackets = kept === 0 && engine.isBetweenPackets
    return end
  }

  const readPieces = () => {
    while (!(heldBack = !mayRead())) {
      const bytes = client.connected ? readPiece() : readArriving()
      if (bytes === null) return
      const handled = handle(bytes)
      if (handled < bytes.length && !client.closed) {
        // The stream does not end before all of it is read.
        stream.unshift(bytes.subarray(handled))
        if (!client.connected) arrived -= bytes.length - handled
      }
      if (client.connected && stream.readableLength > 0 && !options.turns.hasTime()) return wait()
    }
  }

  const readOn = () => {
    isReading = true
    try {
      readPieces()
    } finally {
      isReading = false
    }
  }

  const wait = () => {
    isWaiting = true
    options.turns.wait(...options.owner(), () => {
      isWaiting = false
      readOn()
    })
  }

  const read = () => {
    // The handling of a packet may call: its own reading then goes on.
    if (isWaiting || isReading) return
    // Those who arrive wait for nobody: there is room for a thousand of one address only.
    if (!client.connected || options.turns.mayRun()) readOn()
    else wait()
  }

  /** Lets the client read why, and close the connection. */
  const refuse = (connack: Buffer) => {
    engine.stop()
    stream.end(connack)
    stream.resume()
  }

  const disconnect = () => {
    engine.disconnected()
    stream.removeListener("readable", read)
    stream.end()
    stream.resume()
    options.onDisconnect()
  }

  const onPacket = (packet: Packet) => {
    if (packet.bridgeMode === true) return refuse(unacceptableProtocolLevel)
    if (packet.protocolVersion === 5 && !client.connected) return refuse(unsupportedProtocolVersion)
    if (!keepsToProtocol(packet)) return violated()
    if (packet.cmd === "puback" && client.connected) return onAcknowledge(packet.messageId ?? 0)
    if (packet.cmd !== "disconnect" || !(client.connecting || client.connected)) {
      return engine.handle(packet.cmd === "subscribe" ? keepSubscriptions(packet) : packet)
    }
    if (client.connected) return disconnect()
    // It came with the CONNECT. Aedes handles what came before it when the client is connected, and nothing after it.
    engine.stop()
    client.once("connected", disconnect)
  }

  const engine = new PacketEngine(client, stream, {
    onPacket,
    onUnreadable: ({ message }) => {
      // These are the words of mqtt-packet.
      if (message === "Invalid protocol version") stream.write(unacceptableProtocolLevel)
    },
    onHandled: () => {
      if (heldBack && engine.handling <= options.maxHandling / 2) read()
    }
  })
  stream.on("readable", read)
  return { read, underway: () => engine.handling }
}
