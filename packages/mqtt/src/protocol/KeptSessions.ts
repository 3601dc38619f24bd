/**
 * What the broker keeps of the sessions of its clients: the subscriptions of a
 * session that may be resumed (clean session 0), and the identifiers of QoS 2
 * packets that the client has not completed.
 *
 * All of it is in memory and bounded: a session that was left ends after a time.
 * When all sessions together take too much room, the project that takes most
 * makes room (docs/decisions/0050-sessions-that-left.md).
 */

/** How much is kept, and for how long. */
export interface SessionLimits {
  /** Milliseconds that a session is kept after its connection has ended. */
  readonly expiry: number
  /** Bytes of all sessions. Above it, sessions of the project that has most end. */
  readonly bytes: number
}

/** The connection of a client. */
export interface ClientConnection {
  readonly projectId: string
  /** Its fencing number: a later connection of the client, on whichever server, has a larger one. */
  readonly session: { readonly epoch: number }
}

/** QoS 2 packets of one session that the client has not completed. */
export const maxIncomplete = 64

/** The sessions of one project. */
interface Project {
  readonly sessions: Map<string, Session>
  bytes: number
}

interface Session {
  readonly projectId: string
  /** The latest connection of its client at this server; its number alone when it has ended. */
  connection: ClientConnection["session"]
  /** Quality of service by filter. */
  readonly subscriptions: Map<string, number>
  /** Identifiers of QoS 2 packets that have come and were not completed. */
  readonly incomplete: Set<number>
  /** Bytes of what it keeps, roughly. */
  bytes: number
  /** Unix milliseconds; undefined while the client is connected. */
  leftAt: number | undefined
  /** Its subscriptions are no longer kept, to make room: it ends with its connection. */
  isForfeit: boolean
}

/** What a session, a subscription besides its filter, and a packet identifier take, roughly. */
const sessionBytes = 512
const subscriptionBytes = 64
const identifierBytes = 32

/** The part of all bytes that is free when room has been made: finding who makes room looks at many sessions. */
const roomPart = 1 / 64

export class KeptSessions {
  readonly #limits: SessionLimits
  /** Milliseconds of the clock. */
  readonly #now: () => number
  readonly #connectionOf: (clientId: string) => ClientConnection
  readonly #projects = new Map<string, Project>()
  readonly #sessions = new Map<string, Session>()
  /** The sessions that were left, in that order. */
  readonly #left = new Map<string, Session>()
  #bytes = 0

  /** `now` returns Unix milliseconds, `connectionOf` the connection of a client that is connected. */
  constructor(limits: SessionLimits, now: () => number, connectionOf: (clientId: string) => ClientConnection) {
    this.#limits = limits
    this.#now = now
    this.#connectionOf = connectionOf
  }

  /** Bytes of all sessions, roughly. */
  get bytes(): number {
    return this.#bytes
  }

  /** Sessions that are kept, those of connected clients among them. */
  get size(): number {
    return this.#sessions.size
  }

  /** Whether a client that comes back finds its session. */
  isKept(clientId: string): boolean {
    const session = this.#sessions.get(clientId)
    return session !== undefined && !session.isForfeit && !this.#isOver(session)
  }

  /** Returns the subscriptions of the client's session. */
  subscriptions(clientId: string): ReadonlyArray<{ readonly topic: string; readonly qos: number }> {
    const session = this.#sessions.get(clientId)
    if (session === undefined || this.#isOver(session)) return []
    return Array.from(session.subscriptions, ([topic, qos]) => ({ topic, qos }))
  }

  /** Adds a subscription, or changes its quality of service. */
  subscribe(clientId: string, filter: string, qos: number): void {
    const session = this.#open(clientId)
    if (session.isForfeit) return
    if (!session.subscriptions.has(filter)) this.#grow(session, subscriptionBytes + Buffer.byteLength(filter))
    session.subscriptions.set(filter, qos)
    this.#makeRoom()
  }

  /** Removes subscriptions. */
  unsubscribe(clientId: string, filters: ReadonlyArray<string>): void {
    const session = this.#sessions.get(clientId)
    for (const filter of filters) {
      if (session?.subscriptions.delete(filter)) this.#grow(session, -subscriptionBytes - Buffer.byteLength(filter))
    }
  }

  /** Keeps the identifier of a QoS 2 packet until the client completes the packet. */
  begin(clientId: string, packetId: number): void {
    const session = this.#open(clientId)
    if (!session.incomplete.has(packetId)) {
      session.incomplete.add(packetId)
      this.#grow(session, identifierBytes)
    }
    this.#makeRoom()
  }

  /** Whether the client has sent this QoS 2 packet and not completed it. */
  hasBegun(clientId: string, packetId: number): boolean {
    return this.#sessions.get(clientId)?.incomplete.has(packetId) === true
  }

  /** QoS 2 packets that the client has not completed. */
  incomplete(clientId: string): number {
    return this.#sessions.get(clientId)?.incomplete.size ?? 0
  }

  /** The client has completed a QoS 2 packet. Returns whether there was one. */
  complete(clientId: string, packetId: number): boolean {
    const session = this.#sessions.get(clientId)
    if (session === undefined || !session.incomplete.delete(packetId)) return false
    this.#grow(session, -identifierBytes)
    return true
  }

  /**
   * The client connects. If the connection before this one was at another server, the
   * client may have begun another session there, with the same packet identifiers: the
   * one here ends.
   */
  connects(clientId: string, connection: { readonly epoch: number; readonly epochBefore: number }): void {
    const session = this.#sessions.get(clientId)
    if (session === undefined) return
    if (session.connection.epoch === connection.epochBefore) session.connection = connection
    else this.end(clientId)
  }

  /** The connection has ended, perhaps before the client was told that it is connected. */
  disconnects(clientId: string, connection: ClientConnection["session"]): void {
    const session = this.#sessions.get(clientId)
    // What belongs to the connection is not held for as long as the session.
    if (session?.connection === connection) session.connection = { epoch: connection.epoch }
  }

  /** The client is connected: its session does not end. */
  resumed(clientId: string): void {
    const session = this.#sessions.get(clientId)
    if (session === undefined) return
    if (session.isForfeit || this.#isOver(session)) return this.end(clientId)
    // Also one that the connection before has begun while this one was let in.
    session.connection = this.#connectionOf(clientId).session
    session.leftAt = undefined
    this.#left.delete(clientId)
  }

  /** The connection of the client has ended; it may come back. */
  left(clientId: string): void {
    const session = this.#sessions.get(clientId)
    if (session === undefined) return
    const isEmpty = session.subscriptions.size === 0 && session.incomplete.size === 0
    if (isEmpty || session.isForfeit) return this.end(clientId)
    session.leftAt = this.#now()
    this.#left.delete(clientId)
    this.#left.set(clientId, session)
    this.#makeRoom()
  }

  /** Ends the session of the client: nothing is kept of it. */
  end(clientId: string): void {
    const session = this.#sessions.get(clientId)
    if (session === undefined) return
    this.#sessions.delete(clientId)
    this.#left.delete(clientId)
    this.#grow(session, -session.bytes)
    const project = this.#projects.get(session.projectId)!
    project.sessions.delete(clientId)
    if (project.sessions.size === 0) this.#projects.delete(session.projectId)
  }

  /** Ends the sessions that were left too long ago. */
  endExpired(): void {
    for (const [clientId, session] of this.#left) {
      if (!this.#isOver(session)) return
      this.end(clientId)
    }
  }

  #isOver({ leftAt }: Session): boolean {
    return leftAt !== undefined && leftAt + this.#limits.expiry <= this.#now()
  }

  #open(clientId: string): Session {
    const known = this.#sessions.get(clientId)
    if (known !== undefined) return known
    const { projectId, session: connection } = this.#connectionOf(clientId)
    const session: Session = {
      projectId,
      connection,
      subscriptions: new Map(),
      incomplete: new Set(),
      bytes: 0,
      leftAt: undefined,
      isForfeit: false
    }
    const project = this.#projects.get(projectId) ?? { sessions: new Map(), bytes: 0 }
    project.sessions.set(clientId, session)
    this.#projects.set(projectId, project)
    this.#sessions.set(clientId, session)
    this.#grow(session, sessionBytes)
    return session
  }

  #grow(session: Session, bytes: number): void {
    session.bytes += bytes
    this.#projects.get(session.projectId)!.bytes += bytes
    this.#bytes += bytes
  }

  /** Ends sessions of the project that has most, the largest first, until there is some room. */
  #makeRoom(): void {
    if (this.#bytes <= this.#limits.bytes) return
    const largestOf = new Map<Project, Array<readonly [string, Session]>>()
    while (this.#bytes > this.#limits.bytes * (1 - roomPart)) {
      const project = Array.from(this.#projects.values()).reduce((a, b) => b.bytes > a.bytes ? b : a)
      const sessions = largestOf.get(project) ?? inOrderOfEnd(project)
      largestOf.set(project, sessions)
      const next = sessions.pop()
      if (next === undefined) return
      this.#giveUp(...next)
    }
  }

  /** A connected client goes on without noticing; it finds no session when it comes back. */
  #giveUp(clientId: string, session: Session): void {
    if (session.leftAt !== undefined) return this.end(clientId)
    session.isForfeit = true
    session.subscriptions.clear()
    this.#grow(session, session.incomplete.size * identifierBytes - session.bytes)
  }
}

/** The one that ends first comes last. Those that were left end first, then the largest, then the first. */
const inOrderOfEnd = ({ sessions }: Project): Array<readonly [string, Session]> =>
  Array.from(sessions).toReversed().filter(([, { isForfeit }]) => !isForfeit).sort(([, a], [, b]) =>
    Number(a.leftAt !== undefined) - Number(b.leftAt !== undefined) || a.bytes - b.bytes ||
    (b.leftAt ?? 0) - (a.leftAt ?? 0)
  )
