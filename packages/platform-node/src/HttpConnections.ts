/**
 * The connections of an HTTP server, over TCP or TLS. A connection is idle while
 * no request of it is under way. When there are too many connections, of an
 * address or of all, the one that has been idle longest makes room. If none is
 * idle, the new one ends.
 */
import { addressGroup } from "@device-cloud/core"
import type { EventEmitter } from "node:events"
import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { Server as TlsServer, type TLSSocket } from "node:tls"

/** Connections at once. */
export interface ConnectionLimits {
  readonly connections: number
  /** Of one address; of IPv6, of one network of 64 bits. */
  readonly addressConnections: number
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
  count: number
  /** What has been idle longest comes first. */
  readonly idle: Set<Connection>
}

export class HttpConnections {
  readonly #limits: ConnectionLimits
  readonly #isProxy: (address: string) => boolean
  /** What has been idle longest comes first. */
  readonly #idle = new Set<Connection>()
  readonly #addresses = new Map<string, Address>()
  readonly #ofSocket = new WeakMap<Socket, Connection>()
  #open = 0

  /** `isProxy`: many clients share the address; it has no limit of its own. */
  constructor(server: EventEmitter, limits: ConnectionLimits, isProxy: (address: string) => boolean) {
    this.#limits = limits
    this.#isProxy = isProxy
    if (server instanceof TlsServer) this.#listenSecurely(server)
    else server.on("connection", (socket: Socket) => this.#admit(socket, 0))
  }

  /** A request has come over this connection. */
  began(socket: Socket, response: ServerResponse): void {
    const connection = this.#ofSocket.get(socket)
    if (connection === undefined) return
    if (connection.requests++ === 0) this.#notIdle(connection)
    response.once("close", () => {
      if (--connection.requests > 0 || socket.destroyed) return
      connection.written = socket.bytesWritten
      this.#becomesIdle(connection)
    })
  }

  #listenSecurely(server: TlsServer): void {
    // Nothing but its peer says over which connection a decrypted socket runs.
    const handshakes = new Map<string, Connection>()
    const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
    server.on("connection", (socket: Socket) => {
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
    const address = this.#addresses.get(group) ?? { count: 0, idle: new Set() }
    const connection = new Connection(address, socket, written)
    this.#addresses.set(group, address)
    this.#ofSocket.set(socket, connection)
    this.#open++
    address.count++
    socket.once("close", () => {
      this.#notIdle(connection)
      this.#open--
      if (--address.count === 0) this.#addresses.delete(group)
    })
    if (address.count > this.#limits.addressConnections && !this.#isProxy(remoteAddress)) {
      this.#endLongest(address.idle, connection)
    } else if (this.#open > this.#limits.connections) this.#endLongest(this.#idle, connection)
    if (!socket.destroyed) this.#becomesIdle(connection)
    return connection
  }

  /** Ends the connection that has been idle longest; `newest` if there is no other. */
  #endLongest(idle: ReadonlySet<Connection>, newest: Connection): void {
    for (const connection of idle) {
      this.#notIdle(connection)
      const { socket, written } = connection
      if (written === undefined || socket.bytesWritten === written) return void socket.destroy()
    }
    newest.socket.destroy()
  }

  #becomesIdle(connection: Connection): void {
    this.#idle.add(connection)
    connection.address.idle.add(connection)
  }

  #notIdle(connection: Connection): void {
    this.#idle.delete(connection)
    connection.address.idle.delete(connection)
  }
}
