/**
 * Aedes as the MQTT engine for devices. It keeps sessions with their
 * subscriptions and enforces the protocol. Messages go to the cloud and come
 * from the cloud; the broker routes none between clients.
 */
import { Aedes, type AedesOptions, type AedesPublishPacket, type Client } from "aedes"
import { keepNewerClients, setKeepAlive, startSession } from "./AedesInternals.ts"
import { type KeptSessions, maxIncomplete } from "./KeptSessions.ts"
import { persistenceOf, type Wanted } from "./SessionPersistence.ts"

/** Says that a packet was handled; an error ends the connection. */
export type Done = (error?: Error | null) => void

export interface DeviceBrokerOptions extends Omit<AedesOptions, "preConnect" | "authenticate" | "persistence"> {
  /** Where sessions are kept. */
  readonly sessions: KeptSessions
  /** Sees a CONNECT before the device is authenticated. */
  readonly preConnect: NonNullable<AedesOptions["preConnect"]>
  /** Accepts or refuses a CONNECT. */
  readonly authenticate: NonNullable<AedesOptions["authenticate"]>
  /**
   * Handles a message of a device. A QoS 1 packet must be confirmed before
   * `done` is called: `confirms` is its packet identifier.
   */
  readonly consume: (client: Client, packet: AedesPublishPacket, done: Done, confirms?: number) => void
  /** Whether a device may subscribe to a topic or filter. */
  readonly admits: (client: Client, filter: string) => boolean
}

/** A client has used up what it may have; the connection ends. */
export class LimitExceeded extends Error {}

const nothing = Buffer.alloc(0)

export class DeviceBroker extends Aedes {
  constructor({ sessions, ...options }: DeviceBrokerOptions) {
    /** The subscription that was granted last; aedes stores it in the same turn. */
    let granted: Wanted | undefined
    /** The QoS 2 packets that are being consumed, by client and packet identifier, with who waits for it. */
    const consuming = new Map<string, Array<Done>>()

    /** When clients were let in: the number of each among all. */
    const letIn = new WeakMap<Client, number>()
    let lastLetIn = 0

    /**
     * Consumes a packet once, also when it comes again before it was confirmed, on
     * this connection or the next one of the session, and confirms it each time.
     */
    const consumeOnce = (client: Client, packet: AedesPublishPacket & { messageId: number }, done: Done) => {
      const { messageId } = packet
      const { id } = client
      const key = `${id} ${messageId}`
      if (sessions.hasBegun(id, messageId)) {
        packet.payload = nothing
        const waiting = consuming.get(key)
        if (waiting === undefined) done()
        else waiting.push(done)
        return
      }
      if (sessions.incomplete(id) >= maxIncomplete) {
        return done(new LimitExceeded(`more than ${maxIncomplete} QoS 2 packets without PUBREL`))
      }
      sessions.begin(id, messageId)
      const settled = [done]
      consuming.set(key, settled)
      options.consume(client, packet, (error) => {
        // Aedes keeps the packet until the device completes it; its payload is in the store already.
        packet.payload = nothing
        // If the session has ended meanwhile, a packet of the next one may have this identifier.
        if (consuming.get(key) === settled) {
          consuming.delete(key)
          // The device sends it again.
          if (error) sessions.complete(id, messageId)
        }
        for (const each of settled) each(error)
      })
    }

    super({
      ...options,
      persistence: persistenceOf(sessions, () => granted),
      // The limit of sessions is checked before a packet is consumed.
      maxInflightInbound: 0,
      preConnect: (client, packet, done) => {
        // One and a half times the keep alive (MQTT 3.1.1, section 3.1.2.10).
        setKeepAlive(client, (packet.keepalive ?? 0) * 1500)
        options.preConnect(client, packet, done)
      },
      authenticate: (client, username, password, done) =>
        options.authenticate(client, username, password, (error, isAuthentic) => {
          const isAccepted = error === null && isAuthentic === true && !client.closed && !this.closed
          if (isAccepted) letIn.set(client, ++lastLetIn)
          // Aedes restores subscriptions, and tells the client of its session only if there are some.
          if (!isAccepted || (!client.clean && sessions.subscriptions(client.id).length > 0)) {
            return done(error, isAuthentic)
          }
          if (client.clean) sessions.end(client.id)
          startSession(this, client, sessions.isKept(client.id))
          // What an earlier connection of the same client was about to keep.
          if (client.clean) sessions.end(client.id)
        }),
      authorizeSubscribe: (client, wanted, done) => {
        granted = client !== null && options.admits(client, wanted.topic) ? wanted : undefined
        done(null, granted === undefined ? null : wanted)
      },
      // For QoS 2, aedes sends the PUBREC after this hook.
      authorizePublish: (client, packet, done) => {
        if (client === null) done()
        else if (packet.qos === 2) consumeOnce(client, packet as AedesPublishPacket & { messageId: number }, done)
        else {
          const confirms = packet.qos === 1 ? packet.messageId : undefined
          // Aedes sends no PUBACK for QoS 0, so that it can leave together with the reply.
          packet.qos = 0
          options.consume(client, packet as AedesPublishPacket, done, confirms)
        }
      }
    })
    keepNewerClients(this, (client, than) => letIn.get(client)! > letIn.get(than)!)
    this.on("client", ({ id }) => sessions.resumed(id))
    this.on("clientDisconnect", ({ clean, id }) => {
      if (!clean) sessions.left(id)
    })
  }

  /** Routes nothing between clients. */
  override publish(...args: Array<unknown>): void {
    ;(args.at(-1) as Done | undefined)?.()
  }

  /** Nothing is routed by subscriptions: the client has its own list of them. */
  override subscribe(_topic: string, _deliver: unknown, done?: () => void): void {
    done?.()
  }

  override unsubscribe(_topic: string, _deliver: unknown, done?: () => void): void {
    done?.()
  }
}
