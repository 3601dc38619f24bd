/**
 * Aedes as the MQTT protocol engine of devices: it keeps sessions and their
 * subscriptions, and sees that the protocol is kept; messages go to and come from
 * the cloud, none is routed between clients.
 */
import { Aedes, type AedesOptions, type AedesPublishPacket, type Client } from "aedes"
import type { EventEmitter } from "node:events"
import type { Duplex } from "node:stream"
import { type Publish, takeWhole } from "./WholePackets.ts"

/** The parts of an Aedes client that its types leave out. */
interface ClientInternals {
  _parser: EventEmitter & {
    /** Answers how many bytes it keeps of a packet that is not whole. */
    parse: (bytes: Buffer) => number
    /** 0: the next byte begins a packet. */
    readonly _stateCounter: number
  }
  _parsingBatch: number
  _paused?: boolean
  _disconnected: boolean
  _nextBatch: (error?: Error | null) => void
  _nextId: number
  _authorized: boolean
  _keepaliveInterval: number
  _keepaliveTimer: NodeJS.Timeout | null
  connecting: boolean
  connected: boolean
  connackSent: boolean
}

/** The parts of Aedes that its types leave out. */
interface AedesInternals {
  readonly clients: Record<string, Client | undefined>
  readonly persistence: PersistenceInternals
  readonly registerClient: (client: Client) => void
  readonly unregisterClient: (client: Client) => void
}

/** A subscription that a client asks for. */
type Wanted = Parameters<NonNullable<AedesOptions["authorizeSubscribe"]>>[1]

/** The parts of a persistence that its types leave out. */
interface PersistenceInternals {
  /** Fails when the packet is not there. */
  readonly incomingGetPacket: (client: Client, packet: AedesPublishPacket) => Promise<unknown>
  /** Forgets the subscriptions, or the packets of QoS 2, of an earlier session. */
  readonly cleanSubscriptions: (client: Client) => Promise<void>
  readonly cleanIncoming: (client: Client) => Promise<void>
  /** For a client that is to find its subscriptions again. */
  addSubscriptions: (client: Client, granted: ReadonlyArray<Wanted>) => Promise<unknown>
}

const internals = (client: Client): ClientInternals => client as unknown as ClientInternals
const aedesOf = (broker: Aedes): AedesInternals => broker as unknown as AedesInternals

const nothing = Buffer.alloc(0)

type Done = (error?: Error | null) => void

type Authenticate = NonNullable<AedesOptions["authenticate"]>
type PreConnect = NonNullable<AedesOptions["preConnect"]>

/** CONNACK: accepted, with a new session. */
const accepted = Buffer.from([0x20, 2, 0, 0])

export class DeviceBroker extends Aedes {
  /** What was granted last; it is kept in the same turn. */
  #granted: Wanted | undefined

  constructor(
    options: Omit<AedesOptions, "preConnect" | "authenticate"> & {
      readonly preConnect: PreConnect
      readonly authenticate: Authenticate
      /**
       * Takes a message of a device; `done` says that it was handled, or ends the
       * connection. A message of QoS 1 is to be confirmed before: its packet
       * identifier comes last.
       */
      readonly consume: (client: Client, packet: AedesPublishPacket, done: Done, confirms?: number) => void
      /** Whether a device may subscribe to a topic or filter. */
      readonly admits: (client: Client, filter: string) => boolean
    }
  ) {
    /** Of each client, the packets of QoS 2 that are being consumed, by their identifier. */
    const consuming = new WeakMap<Client, Map<number, Array<Done>>>()

    /** A packet that comes again before it was confirmed is consumed once, and confirmed as often as it came. */
    const consumeOnce = (client: Client, packet: AedesPublishPacket & { messageId: number }, done: Done) => {
      const { messageId } = packet
      const ofClient = consuming.get(client) ?? new Map<number, Array<Done>>()
      consuming.set(client, ofClient)
      const waiting = ofClient.get(messageId)
      if (waiting !== undefined) {
        packet.payload = nothing
        waiting.push(done)
        return
      }
      ofClient.set(messageId, [done])
      const settle: Done = (error) => {
        const settled = ofClient.get(messageId) ?? []
        // Aedes remembers the packet until the device completes it; what it carried is stored.
        packet.payload = nothing
        ofClient.delete(messageId)
        for (const each of settled) each(error)
      }
      aedesOf(this).persistence.incomingGetPacket(client, packet).then(
        () => settle(),
        () => options.consume(client, packet, settle)
      )
    }

    super({
      ...options,
      preConnect: (client, packet, done) => {
        // One and a half times as long (MQTT 3.1.1, section 3.1.2.10).
        internals(client)._keepaliveInterval = (packet.keepalive ?? 0) * 1500
        options.preConnect(client, packet, done)
      },
      authenticate: (client, username, password, done) =>
        options.authenticate(client, username, password, (error, isAuthentic) => {
          if (error === null && isAuthentic === true && client.clean && !client.closed && !this.closed) {
            this.#welcome(client)
          } else done(error, isAuthentic)
        }),
      authorizeSubscribe: (client, wanted, done) => {
        this.#granted = client !== null && options.admits(client, wanted.topic) ? wanted : undefined
        done(null, this.#granted ?? null)
      },
      // PUBREC follows the answer of this hook.
      authorizePublish: (client, packet, done) => {
        if (client === null) done()
        else if (packet.qos === 2) consumeOnce(client, packet as AedesPublishPacket & { messageId: number }, done)
        else {
          const confirms = packet.qos === 1 ? packet.messageId : undefined
          // Aedes would send a PUBACK in a write of its own; so it leaves together with the reply.
          packet.qos = 0
          options.consume(client, packet as AedesPublishPacket, done, confirms)
        }
      }
    })
  }

  override async listen(): Promise<void> {
    await super.listen()
    const { persistence } = aedesOf(this)
    const add = persistence.addSubscriptions.bind(persistence)
    // With each that is granted, aedes hands over all that the packet asks for, also what was refused.
    persistence.addSubscriptions = (client) => add(client, this.#granted === undefined ? [] : [this.#granted])
  }

  /**
   * Lets in a client that begins a new session. Aedes would ask its persistence
   * in seven steps what it has kept, through promises and a pipeline of streams
   * that cost as much as to authenticate: nothing is kept of a message here.
   */
  #welcome(client: Client): void {
    const self = internals(client)
    const aedes = aedesOf(this)
    self._authorized = true
    if (self._keepaliveInterval > 0) {
      // A timer of Node: Aedes refreshes it with each packet.
      self._keepaliveTimer = setTimeout(keepAliveMissed, self._keepaliveInterval, client)
    }
    void aedes.persistence.cleanSubscriptions(client)
    aedes.registerClient(client)
    void aedes.persistence.cleanIncoming(client)
    client.conn.write(accepted)
    self.connecting = false
    self.connected = true
    self.connackSent = true
    self._paused = false
    client.emit("connected")
    self._nextBatch()
  }

  /** Nothing is routed between clients. */
  override publish(...args: Array<unknown>): void {
    ;(args.at(-1) as Done | undefined)?.()
  }

  /**
   * Aedes forgets a client by its id. One that closes late must not take the
   * newer client of the same id with it.
   */
  unregisterClient(client: Client): void {
    if (aedesOf(this).clients[client.id] === client) aedesOf(Aedes.prototype).unregisterClient.call(this, client)
  }
}

const keepAliveMissed = (client: Client): void => void client.emit("error", new Error("keep alive timeout"))

/**
 * Reads from the client's connection only while `mayRead` says so, and never
 * buffers a packet larger than `maxPacketBytes`: such a one ends the connection.
 * The result asks again whether there is something to read.
 *
 * A client that sends DISCONNECT is let go: nothing more is read of it, and it
 * closes the connection. Aedes would cut it at once, which over TLS looks like
 * a reset.
 */
export const controlReading = (client: Client, stream: Duplex, options: {
  readonly maxPacketBytes: number
  /** Given the number of packets of this client that are being handled. */
  readonly mayRead: (handling: number) => boolean
  readonly onDisconnect: () => void
  /** The client has confirmed a packet of QoS 1. */
  readonly onAcknowledge: (packetId: number) => void
}): () => void => {
  const self = internals(client)
  stream.removeListener("readable", self._nextBatch)
  self._parsingBatch = 0
  const parse = self._parser.parse.bind(self._parser)
  // Until the CONNACK only one packet is handled at a time.
  const mayRead = () =>
    !self._paused && !client.closed && (client.connected || self._parsingBatch === 0) &&
    options.mayRead(self._parsingBatch)
  const onAcknowledge = (packetId: number) => {
    // Of what Aedes sends, nothing waits for one.
    if (self._keepaliveInterval > 0) self._keepaliveTimer?.refresh()
    options.onAcknowledge(packetId)
  }
  const violated = () => void client.emit("error", new Error("protocol violation"))
  const [handle] = self._parser.listeners("packet") as [(packet: Publish | Packet) => void]
  const whole = {
    onPublish: (packet: Publish) => isText(packet.topic) ? handle.call(self._parser, packet) : violated(),
    onAcknowledge,
    mayGoOn: () => client.connected && !client.closed && !self._disconnected
  }
  /** Whether the next byte begins a packet. */
  let betweenPackets = true
  /** Whether there may be bytes that were left unread. */
  let heldBack = false
  const read = () => {
    while (!(heldBack = !mayRead())) {
      const bytes = stream.read() as Buffer | null
      if (bytes === null) return
      const taken = betweenPackets ? takeWhole(bytes, whole) : 0
      if (taken === bytes.length) continue
      const kept = parse(taken === 0 ? bytes : bytes.subarray(taken))
      if (kept > options.maxPacketBytes) client.emit("error", new Error("packet too large"))
      betweenPackets = kept === 0 && self._parser._stateCounter === 0
    }
  }
  self._nextBatch = (error) => {
    if (error) {
      client.emit("error", error)
      return
    }
    if (self._parsingBatch > 0) self._parsingBatch--
    if (heldBack) read()
  }
  stream.on("readable", read)
  self._parser.prependListener("error", ({ message }: Error) => {
    // The parser of MQTT packets says it in these words.
    if (message === "Invalid protocol version") stream.write(unacceptableProtocolLevel)
  })
  self._parser.removeListener("packet", handle)
  const take = (packet: Packet) => {
    // The protocol levels by which bridges introduce themselves.
    if (packet.bridgeMode === true) {
      self._parser.removeAllListeners("packet")
      stream.end(unacceptableProtocolLevel)
      stream.resume()
      return
    }
    if (!keepsToProtocol(packet)) return violated()
    if (packet.cmd === "puback" && client.connected) return onAcknowledge(packet.messageId ?? 0)
    if (packet.cmd !== "disconnect" || !client.connected) return handle.call(self._parser, packet)
    self._disconnected = true
    self._parser.removeAllListeners("packet")
    stream.removeListener("readable", read)
    stream.end()
    stream.resume()
    options.onDisconnect()
  }
  self._parser.on("packet", take)
  return read
}

/** A packet as the parser gives it; which members it has depends on `cmd`. */
interface Packet {
  readonly cmd: string
  /** Of the packet without its fixed header. */
  readonly length: number
  readonly messageId?: number
  readonly qos: number
  readonly topic: string
  readonly will?: { readonly qos: number }
  readonly subscriptions: ReadonlyArray<{ readonly topic: string }>
  readonly unsubscriptions: ReadonlyArray<string>
  readonly bridgeMode?: boolean
}

/** Without NUL and what was no UTF-8. */
const isText = (text: string): boolean => !/[\0\uFFFD]/.test(text)
const isId = (id: number | undefined): boolean => id !== undefined && id > 0

/** What the parser does not look at (MQTT 3.1.1, sections 1.5.3, 2.3.1, 3). */
const keepsToProtocol = (packet: Packet): boolean => {
  const { cmd, length, messageId } = packet
  switch (cmd) {
    case "connect":
      return packet.will === undefined || packet.will.qos < 3
    case "publish":
      return isText(packet.topic) &&
        (packet.qos === 0 || (isId(messageId) && length >= 4 + Buffer.byteLength(packet.topic)))
    case "puback":
    case "pubrec":
    case "pubrel":
    case "pubcomp":
      return length === 2 && isId(messageId)
    case "subscribe":
      return isId(messageId) && packet.subscriptions.length > 0 &&
        packet.subscriptions.every(({ topic }) => isText(topic))
    case "unsubscribe":
      return isId(messageId) && packet.unsubscriptions.length > 0 && packet.unsubscriptions.every(isText)
    case "pingreq":
    case "disconnect":
      return length === 0
    default:
      return true
  }
}

/** CONNACK with return code 1. */
const unacceptableProtocolLevel = Buffer.from([0x20, 2, 0, 1])

/** The next free packet identifier of the client, 1 to 65535. */
export const nextPacketId = (client: Client): number => {
  const self = internals(client)
  const id = self._nextId
  self._nextId = id >= 65_535 ? 1 : id + 1
  return id
}
