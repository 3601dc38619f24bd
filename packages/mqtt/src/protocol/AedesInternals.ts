/**
 * Everything in this package that depends on private members of aedes.
 *
 * No other file names one of them. They can change with any release, so
 * `package.json` pins aedes to {@link pinnedVersion}; the test of this file
 * fails when the installed version differs, or when one of the
 * {@link usedMembers} is missing or has another shape. To move to another
 * version, read its sources for what each function here does, then change both.
 */
import type { Aedes, Client } from "aedes"
import type { EventEmitter } from "node:events"
import type { Duplex } from "node:stream"
import type { Packet } from "./Packet.ts"
import type { Publish } from "./WholePackets.ts"

/** The version of aedes whose private members this file uses. */
export const pinnedVersion = "1.2.0"

interface BrokerMembers {
  /** Connected clients by their id. */
  readonly clients: Record<string, Client | undefined>
  /** Closes the earlier client of the same id, then counts this one as connected. */
  registerClient: (client: Client) => void
  /** Forgets the client of this id. */
  unregisterClient: (client: Client) => void
}

interface ClientMembers {
  /** By topic or filter. */
  readonly subscriptions: Record<string, { readonly qos: number }>
  connackSent: boolean
  /** Whether `authenticate` has accepted the client. */
  _authorized: boolean
  /** Whether the client has sent DISCONNECT. */
  _disconnected: boolean
  /** Milliseconds; 0 and below: no limit. */
  _keepaliveInterval: number
  _keepaliveTimer: NodeJS.Timeout | null
  /** Aedes calls it after each packet that it has handled. */
  _nextBatch: (error?: Error | null) => void
  /** The next packet identifier. */
  _nextId: number
  readonly _parser: ParserMembers
  /** Packets that are being handled. */
  _parsingBatch: number
}

/** Set by `Client.pause`, which aedes calls while it authenticates. */
interface PausedMember {
  _paused?: boolean
}

interface ParserMembers extends EventEmitter {
  /** Emits the packets in `bytes`; returns how many bytes of an incomplete packet it keeps. */
  readonly parse: (bytes: Buffer) => number
  /** 0: the next byte begins a packet. */
  readonly _stateCounter: number
}

/** Each private member that this file uses, with the type that it has in a new broker and a new client. */
export const usedMembers = {
  broker: { clients: "object", registerClient: "function", unregisterClient: "function" },
  client: {
    _authorized: "boolean",
    _disconnected: "boolean",
    _keepaliveInterval: "number",
    _keepaliveTimer: "null",
    _nextBatch: "function",
    _nextId: "number",
    _parser: "object",
    _parsingBatch: "number",
    connackSent: "boolean",
    subscriptions: "object"
  },
  pausedClient: { _paused: "boolean" },
  parser: { _stateCounter: "number", parse: "function" }
} as const satisfies {
  readonly broker: Record<keyof BrokerMembers, string>
  readonly client: Record<keyof ClientMembers, string>
  readonly pausedClient: Record<keyof PausedMember, string>
  readonly parser: Record<Exclude<keyof ParserMembers, keyof EventEmitter>, string>
}

const brokerMembers = (broker: Aedes): BrokerMembers => broker as unknown as BrokerMembers
const clientMembers = (client: Client): ClientMembers & PausedMember =>
  client as unknown as ClientMembers & PausedMember

/** The connected client of this id. */
export const clientOf = (broker: Aedes, clientId: string): Client | undefined => brokerMembers(broker).clients[clientId]

/** The subscriptions of the client, by topic or filter. */
export const subscriptionsOf = (client: Client): ClientMembers["subscriptions"] => clientMembers(client).subscriptions

/** The largest packet identifier, and how many there are. */
export const maxPacketId = 65_535

/** Returns the next packet identifier of the client, from 1 to {@link maxPacketId}. */
export const nextPacketId = (client: Client): number => {
  const members = clientMembers(client)
  const id = members._nextId
  members._nextId = id >= maxPacketId ? 1 : id + 1
  return id
}

/** Sets how long the client may stay silent. A CONNECT with an unclean session sets aedes' own value later. */
export const setKeepAlive = (client: Client, milliseconds: number): void => {
  clientMembers(client)._keepaliveInterval = milliseconds
}

/**
 * Lets an authenticated client in that has no subscriptions, and sends the CONNACK.
 * `isPresent`: the client has its session back.
 *
 * Aedes takes seven steps for this, through promises and a pipeline of streams,
 * to find out what its persistence keeps for the client. This broker keeps no
 * messages (docs/decisions/0041-clean-sessions-at-once.md). With this function
 * and batches that gather, `mqtt-connect` over TCP went from 225 to 260 µs of
 * processor time for each connection to about 110; aedes alone takes 130 to 150.
 */
export const startSession = (broker: Aedes, client: Client, isPresent: boolean): void => {
  const members = clientMembers(client)
  members._authorized = true
  if (members._keepaliveInterval > 0) {
    // Node's timer and not a fiber: aedes refreshes it with each packet.
    members._keepaliveTimer = setTimeout(keepAliveMissed, members._keepaliveInterval, client)
  }
  brokerMembers(broker).registerClient.call(broker, client)
  client.conn.write(isPresent ? resumed : accepted)
  client.connecting = false
  client.connected = true
  members.connackSent = true
  members._paused = false
  client.emit("connected")
  members._nextBatch()
}

/** CONNACK: accepted, with a new session. */
const accepted = Buffer.from([0x20, 2, 0, 0])

/** CONNACK: accepted, with the session from before. */
const resumed = Buffer.from([0x20, 2, 1, 0])

const keepAliveMissed = (client: Client): void => void client.emit("error", new Error("keep alive timeout"))

/**
 * Aedes removes a client by its id when it closes. Keeps a client that closes
 * late from removing the newer client of the same id, and one that gets its
 * subscriptions back meanwhile from taking the place of the newer one.
 */
export const keepNewerClients = (broker: Aedes, isNewer: (client: Client, than: Client) => boolean): void => {
  const members = brokerMembers(broker)
  const { registerClient, unregisterClient } = members
  members.registerClient = (client) => {
    const known = members.clients[client.id]
    if (client.closed || (known !== undefined && isNewer(known, client))) client.close()
    else registerClient.call(broker, client)
  }
  members.unregisterClient = (client) => {
    if (members.clients[client.id] === client) unregisterClient.call(broker, client)
  }
}

/**
 * Aedes leaves a filter out that comes again in its SUBSCRIBE, and its code in the
 * SUBACK with it. Returns a SUBSCRIBE whose list stays as it is: each filter gets
 * its code (MQTT 3.1.1, section 3.9.3).
 */
export const keepSubscriptions = (packet: Packet): Packet => Object.assign(new KeptSubscribe(packet), packet)

/** V8 keeps an accessor of one object, with all that it refers to, until the next full collection: these are of a class. */
class KeptSubscribe {
  readonly #subscriptions: Packet["subscriptions"]

  constructor({ subscriptions }: Packet) {
    this.#subscriptions = subscriptions
  }

  get subscriptions(): Packet["subscriptions"] {
    return this.#subscriptions
  }

  set subscriptions(_shorter) {}
}

/** What happens to the packets of a client whose reading {@link PacketEngine} has taken over. */
export interface PacketEvents {
  /** The parser has read a packet. */
  readonly onPacket: (packet: Packet) => void
  /** The parser cannot read what the client sends; aedes ends the connection after this call. */
  readonly onUnreadable: (error: Error) => void
  /** A packet has been handled. */
  readonly onHandled: () => void
}

/** Parses and handles the packets of one client. Aedes does not read from the connection any more. */
export class PacketEngine {
  readonly #members: ClientMembers & PausedMember
  readonly #handle: (packet: Publish | Packet) => void

  constructor(client: Client, stream: Duplex, { onHandled, onPacket, onUnreadable }: PacketEvents) {
    const members = clientMembers(client)
    const parser = members._parser
    this.#members = members
    stream.removeListener("readable", members._nextBatch)
    members._parsingBatch = 0
    members._nextBatch = (error) => {
      if (error) {
        client.emit("error", error)
        return
      }
      if (members._parsingBatch > 0) members._parsingBatch--
      onHandled()
    }
    parser.prependListener("error", onUnreadable)
    const [handle] = parser.listeners("packet") as [(packet: Publish | Packet) => void]
    this.#handle = handle
    parser.removeListener("packet", handle)
    parser.on("packet", onPacket)
  }

  /** Packets of the client that are being handled. */
  get handling(): number {
    return this.#members._parsingBatch
  }

  /** Whether aedes is authenticating the client. */
  get isPaused(): boolean {
    return this.#members._paused === true
  }

  /** Whether the client has sent DISCONNECT. */
  get hasDisconnected(): boolean {
    return this.#members._disconnected
  }

  /** Whether the parser has read all packets to their ends. */
  get isBetweenPackets(): boolean {
    return this.#members._parser._stateCounter === 0
  }

  /** Reads the packets in `bytes`; returns how many bytes of an incomplete packet it keeps. */
  parse(bytes: Buffer): number {
    return this.#members._parser.parse(bytes)
  }

  /** Lets aedes handle a packet. */
  handle(packet: Publish | Packet): void {
    this.#handle.call(this.#members._parser, packet)
  }

  /** The client has sent something that aedes does not see. */
  refreshKeepAlive(): void {
    if (this.#members._keepaliveInterval > 0) this.#members._keepaliveTimer?.refresh()
  }

  /** Handles no packet any more. */
  stop(): void {
    this.#members._parser.removeAllListeners("packet")
  }

  /** Handles no packet any more; the client has sent DISCONNECT. */
  disconnected(): void {
    this.#members._disconnected = true
    this.stop()
  }
}
