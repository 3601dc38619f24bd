/**
 * Listens for connections over TCP and TLS.
 */
import { type AddressRange, type ClientOrigin, isTrustedProxy } from "@device-cloud/core"
import { Duration, Effect, Schema, Stream } from "effect"
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net"
import type { Duplex } from "node:stream"
import {
  createSecureContext,
  createServer as createTlsServer,
  type SecureContextOptions,
  type Server as TlsServer
} from "node:tls"
import type { ServerCertificate } from "./DevelopmentCertificate.ts"
import { HandshakeTurns } from "./HandshakeTurns.ts"
import * as ProxyHeader from "./ProxyHeader.ts"
import type { Arrival, Arrivals } from "./session/Arrivals.ts"
import { type Peer, peerOf } from "./session/Peer.ts"

export interface TlsOptions extends ServerCertificate {
  /** 0: any free port. */
  readonly port: number
  /**
   * Whether the broker asks every client for a certificate. Devices of products
   * with `authType` `certificate` need that; others need no certificate. Default:
   * only with `clientAuthorities`.
   */
  readonly clientCertificates?: boolean
  /**
   * Authorities of an application's own, as PEM. The broker asks every client for a
   * certificate, and hands those that it has verified against them to the provers
   * of `DeviceCredentials`. A client without a certificate, or with one of another
   * authority, needs another proof.
   */
  readonly clientAuthorities?: string
  /**
   * Cipher suites, as OpenSSL writes them. Default: those of TLS 1.3, and those of
   * TLS 1.2 with forward secrecy and authenticated encryption. Older devices may
   * need others.
   */
  readonly ciphers?: string
  /**
   * Certificates that take the place of the present one, each for the connections
   * that come after it; see `CertificateFiles.renewals`. One that cannot be used is
   * logged and has no effect. Default: none.
   */
  readonly renewals?: Stream.Stream<ServerCertificate>
}

/** The protocols and cipher suites that this server speaks: ECDHE with AEAD, and TLS 1.3. */
export const modernTls = {
  minVersion: "TLSv1.2",
  ciphers: [
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305"
  ].join(":")
} as const

/** The broker cannot listen on a port, or cannot use its certificate. */
export class ListenError extends Schema.TaggedError<ListenError>()("ListenError", {
  /** A sentence that names the port or the certificate. */
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/** Who takes connections. */
export interface Reception {
  readonly arrivals: Arrivals
  /** A connection has come. */
  readonly came: () => void
  /** Takes a connection that was let in. */
  readonly accept: (stream: Duplex, peer: Peer, arrival: Arrival) => void
  /** How long a TLS handshake may take, and the header of a proxy. */
  readonly handshakeTime: Duration.Input
  /** The proxies from which all connections come, with a header of the PROXY protocol; undefined: they come from clients. */
  readonly proxies: ReadonlyArray<AddressRange> | undefined
  /** A connection was closed that is not from one of `proxies`, or has no header. */
  readonly refused: () => void
}

/**
 * Connections that wait until the server accepts them; the system may have a lower limit. Node.js accepts one in each
 * round of its event loop, and by itself lets 511 wait: of thousands of devices that come back at once, the others
 * would try again after a second or more.
 */
const backlog = 4096

/** Small packets leave at once. */
const listening = { noDelay: true } as const

/** Listens for plain MQTT until the scope closes. */
export const listenTcp = (host: string, port: number, reception: Reception) =>
  listen(
    host,
    port,
    createTcpServer(listening, (socket) =>
      receive(reception, socket, (origin, arrival) => reception.accept(socket, origin, arrival)))
  )

/** Listens for MQTT over TLS until the scope closes. */
export const listenTls = Effect.fnUntraced(function*(
  host: string,
  options: TlsOptions,
  reception: Reception
) {
  const { certificate, ciphers = modernTls.ciphers, clientAuthorities, key, port, renewals } = options
  const { clientCertificates = clientAuthorities !== undefined } = options
  const secure = ({ certificate, key }: ServerCertificate) => ({
    ...modernTls,
    ciphers,
    cert: certificate,
    key,
    // Without authorities of its own, Node.js would read and use those that it trusts for servers.
    ...clientCertificates ? { ca: clientAuthorities ?? [] } : {}
  })
  const server = yield* Effect.try({
    try: () =>
      createTlsServer({
        ...secure({ certificate, key }),
        handshakeTimeout: Duration.toMillis(reception.handshakeTime),
        ...clientCertificates ? { requestCert: true, rejectUnauthorized: false } : {}
      }),
    catch: (cause) => new ListenError({ message: `The TLS certificate cannot be used (${String(cause)})`, cause })
  })
  const listener = yield* listen(host, port, createTcpServer(listening, shakeHands(server, reception)))
  if (renewals !== undefined) {
    const renewed = renew(server, Stream.map(renewals, secure))
    yield* Effect.forkScoped(Effect.annotateLogs(renewed, { port: listener.port }))
  }
  return listener
})

/** Uses each certificate for the connections that come after it; one that cannot be used has no effect. */
export const renew = (
  server: Pick<TlsServer, "setSecureContext">,
  contexts: Stream.Stream<SecureContextOptions>
): Effect.Effect<void> =>
  Stream.runForEach(contexts, (context) =>
    Effect.try(() => {
      // The server takes over the parts of an unusable one before it fails.
      createSecureContext(context)
      server.setSecureContext(context)
    }).pipe(Effect.matchEffect({
      onSuccess: () => Effect.logInfo("The TLS certificate was renewed"),
      onFailure: ({ cause }) =>
        Effect.logError("The renewed TLS certificate cannot be used; the earlier one stays", cause)
    })))

/** Returns what to do with a connection before its handshake. The TLS server does not listen itself. */
const shakeHands = (server: TlsServer, reception: Reception): (socket: Socket) => void => {
  const { accept, arrivals, handshakeTime } = reception
  /** Connections whose handshake is not complete, by address and port of their other end. */
  const shakingHands = new Map<string, { readonly origin: ClientOrigin; readonly arrival: Arrival }>()
  const ends = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
  const turns = new HandshakeTurns(
    Duration.toMillis(handshakeTime),
    (socket) => void server.emit("connection", socket),
    () => arrivals.isCrowded
  )
  server
    .on("secureConnection", (socket) => {
      const key = ends(socket)
      const known = shakingHands.get(key)
      shakingHands.delete(key)
      if (known === undefined) socket.destroy()
      else accept(socket, { ...peerOf(socket), address: known.origin.address }, known.arrival)
    })
    // Node.js leaves a socket open whose handshake has taken too long.
    .on("tlsClientError", (_, socket) => void socket.destroy())
  return (socket) =>
    receive(reception, socket, (origin, arrival) => {
      const key = ends(socket)
      const connection = { origin, arrival }
      shakingHands.set(key, connection)
      socket.once("close", () => {
        if (shakingHands.get(key) === connection) shakingHands.delete(key)
      })
      turns.add(socket, { isKnown: arrival.isKnown, holds: (bytes) => arrivals.holds(arrival, bytes) })
    })
}

/**
 * Counts a connection, or cuts it. It counts from its first byte: a handshake that
 * never ends holds a socket, too.
 */
const receive = (
  { arrivals, came, handshakeTime, proxies, refused }: Reception,
  socket: Socket,
  letIn: (origin: ClientOrigin, arrival: Arrival) => void
): void => {
  came()
  const enter = (origin: ClientOrigin) => {
    const arrival = arrivals.admit(origin.address, socket)
    if (arrival === undefined) return void socket.destroy()
    socket.once("close", () => arrivals.left(arrival))
    letIn(origin, arrival)
  }
  const peer = { address: peerOf(socket).address, isSecure: false }
  if (proxies === undefined) return enter(peer)
  // The broker learns of the end from `close`.
  socket.on("error", () => {})
  if (!isTrustedProxy(peer.address, proxies)) {
    socket.destroy()
    return refused()
  }
  ProxyHeader.read(socket, Duration.toMillis(handshakeTime), {
    read: ({ origin = peer }) => enter(origin),
    refused
  })
}

/** A port that listens. */
export interface Listener {
  readonly port: number
  /** Refuses new connections. Those that are open stay. */
  readonly close: Effect.Effect<void>
}

/** Listens until the scope closes. */
const listen = Effect.fnUntraced(function*(host: string, port: number, server: Server) {
  const failed = (cause: unknown) =>
    new ListenError({ message: `The MQTT broker cannot listen on ${host}, port ${port} (${String(cause)})`, cause })
  const close = Effect.sync(() => void server.close())
  yield* Effect.acquireRelease(
    Effect.callback<void, ListenError>((resume) => {
      server.once("error", (cause) => resume(Effect.fail(failed(cause))))
      try {
        server.listen({ host, port, backlog }, () => resume(Effect.void))
      } catch (cause) {
        // A port that is none.
        resume(Effect.fail(failed(cause)))
      }
    }),
    // Open connections end with the broker.
    () => close
  )
  return { port: (server.address() as AddressInfo).port, close } satisfies Listener
})
