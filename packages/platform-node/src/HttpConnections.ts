/**
 * The connections of an HTTP server, over TCP or TLS. A connection is idle while
 * no request of it is under way. When there are too many connections, of an
 * address, of strangers or of all, the one that has been idle longest makes room,
 * strangers before those who are known. If none is idle, the new one ends. A part
 * of all connections is for addresses from which somebody was authenticated lately.
 */
import { addressGroup, type KnownAddresses } from "@device-cloud/core"
import type { EventEmitter } from "node:events"
import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { Server as TlsServer, type TLSSocket } from "node:tls"

/** Connections at once. */
export interface ConnectionLimits {
  readonly connections: number
  /** Those of `connections` that only addresses get that are known. */
  readonly reservedConnections: number
  /** Of one address; of IPv6, of one network of 64 bits. */
  readonly addressConnections: number
}

/** Tells addresses apart. */
export interface Acquaintance {
  /** Whether many clients share the address; it has no limit of its own. */
  readonly isProxy: (address: string) => boolean
  /** Undefined: nobody is known. */
  readonly known: KnownAddresses["Service"] | undefined
}

class Connection {
  readonly address: Address
  /** Over TLS, the decrypted socket as soon as there is one. */
  socket: Socket
  /** Requests that are under way. */
  requests = 0
  /**
   * Bytes written when it became idle. It carries another protocol if there are
   * more. Undefined during a TLS handshake.
   */
  written: number | undefined

  constructor(address: Address, socket: Socket, written: number | undefined) {
    this.address = address
    this.socket = socket
    this.written = written
  }
}

interface Address {
  readonly group: string
  isKnown: boolean
  count: number
  /** What has been idle longest comes first. */
  readonly idle: Set<Connection>
}

export class HttpConnections {
  readonly #limits: ConnectionLimits
  readonly #acquaintance: Acquaintance
  /** What has been idle longest comes first. */
  readonly #idleStrangers = new Set<Connection>()
  readonly #idleKnown = new Set<Connection>()
  readonly #addresses = new Map<string, Address>()
  readonly #ofSocket = new WeakMap<Socket, Connection>()
  #open = 0
  #strangers = 0

  /** `door`: accepts the connections of the server. */
  constructor(server: EventEmitter, limits: ConnectionLimits, acquaintance: Acquaintance, door: EventEmitter) {
    this.#limits = limits
    this.#acquaintance = acquaintance
    if (server instanceof TlsServer) this.#listenSecurely(server, door)
    else door.on("connection", (socket: Socket) => this.#admit(socket, 0))
  }

  /** Whether somebody at the other end of a connection was authenticated lately. */
  isKnown(socket: Socket): boolean {
    return this.#ofSocket.get(socket)?.address.isKnown === true
  }

  /** A request has come over this connection. */
  began(socket: Socket, response: ServerResponse): void {
    const connection = this.#ofSocket.get(socket)
    if (connection === undefined) return
    if (connection.requests++ === 0) this.#notIdle(connection)
    response.once("close", () => {
      this.#meet(connection.address)
      if (--connection.requests > 0 || socket.destroyed) return
      connection.written = socket.bytesWritten
      this.#becomesIdle(connection)
    })
  }

  #listenSecurely(server: TlsServer, door: EventEmitter): void {
    // Nothing but its peer says over which connection a decrypted socket runs.
    const handshakes = new Map<string, Connection>()
    const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
    door.on("connection", (socket: Socket) => {
      const peer = peerOf(socket)
      const connection = this.#admit(socket, undefined)
      handshakes.set(peer, connection)
      socket.once("close", () => {
        if (handshakes.get(peer) === connection) handshakes.delete(peer)
      })
    })
    server.on("secureConnection", (socket: TLSSocket) => {
      const connection = handshakes.get(peerOf(socket))
      if (connection === undefined) return
      handshakes.delete(peerOf(socket))
      connection.socket = socket
      connection.written = socket.bytesWritten
      this.#ofSocket.set(socket, connection)
    })
  }

  /** Counts the connection, and ends one if there are too many. */
  #admit(socket: Socket, written: number | undefined): Connection {
    const { remoteAddress = "" } = socket
    const group = addressGroup(remoteAddress)
    const isProxy = this.#acquaintance.isProxy(remoteAddress)
    const address = this.#addresses.get(group) ?? { group, isKnown: isProxy, count: 0, idle: new Set() }
    const connection = new Connection(address, socket, written)
    this.#addresses.set(group, address)
    this.#ofSocket.set(socket, connection)
    this.#meet(address)
    this.#open++
    address.count++
    if (!address.isKnown) this.#strangers++
    socket.once("close", () => {
      this.#notIdle(connection)
      this.#open--
      if (!address.isKnown) this.#strangers--
      if (--address.count === 0) this.#addresses.delete(group)
    })
    const { addressConnections, connections, reservedConnections } = this.#limits
    if (address.count > addressConnections && !isProxy) this.#endLongest(connection, address.idle)
    else if (!address.isKnown && this.#strangers > connections - reservedConnections) {
      this.#endLongest(connection, this.#idleStrangers)
    } else if (this.#open > connections) this.#endLongest(connection, this.#idleStrangers, this.#idleKnown)
    if (!socket.destroyed) this.#becomesIdle(connection)
    return connection
  }

  /** Ends the connection that has been idle longest; `newest` if there is no other. */
  #endLongest(newest: Connection, ...lines: ReadonlyArray<ReadonlySet<Connection>>): void {
    for (const line of lines) {
      for (const connection of line) {
        this.#notIdle(connection)
        const { socket, written } = connection
        if (written === undefined || socket.bytesWritten === written) return void socket.destroy()
      }
    }
    newest.socket.destroy()
  }

  /** Finds out whether somebody at the address has been authenticated. */
  #meet(address: Address): void {
    if (address.isKnown || this.#acquaintance.known?.has(address.group) !== true) return
    address.isKnown = true
    this.#strangers -= address.count
    for (const connection of address.idle) {
      this.#idleStrangers.delete(connection)
      this.#idleKnown.add(connection)
    }
  }

  #idleOf({ isKnown }: Address): Set<Connection> {
    return isKnown ? this.#idleKnown : this.#idleStrangers
  }

  #becomesIdle(connection: Connection): void {
    this.#idleOf(connection.address).add(connection)
    connection.address.idle.add(connection)
  }

  #notIdle(connection: Connection): void {
    this.#idleOf(connection.address).delete(connection)
    connection.address.idle.delete(connection)
  }
}
