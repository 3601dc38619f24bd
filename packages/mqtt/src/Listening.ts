/**
 * Listens for connections over TCP and TLS.
 */
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
  /** Takes a connection that was let in. */
  readonly accept: (stream: Duplex, peer: Peer, arrival: Arrival) => void
  /** How long a TLS handshake may take. */
  readonly handshakeTime: Duration.Input
}

/** Small packets leave at once. */
const listening = { noDelay: true } as const

/** Listens for plain MQTT until the scope closes. Returns the port. */
export const listenTcp = (host: string, port: number, { accept, arrivals }: Reception) =>
  listen(
    host,
    port,
    createTcpServer(listening, (socket) => {
      const arrival = admit(arrivals, socket)
      if (arrival !== undefined) accept(socket, peerOf(socket), arrival)
    })
  )

/** Listens for MQTT over TLS until the scope closes. Returns the port. */
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
        ...listening,
        ...secure({ certificate, key }),
        handshakeTimeout: Duration.toMillis(reception.handshakeTime),
        ...clientCertificates ? { requestCert: true, rejectUnauthorized: false } : {}
      }),
    catch: (cause) => new ListenError({ message: `The TLS certificate cannot be used (${String(cause)})`, cause })
  })
  receive(server, reception)
  const listeningPort = yield* listen(host, port, server)
  if (renewals !== undefined) yield* Effect.forkScoped(renew(server, Stream.map(renewals, secure)))
  return listeningPort
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

const receive = (server: TlsServer, { accept, arrivals }: Reception): void => {
  /** Connections whose handshake is not complete, by address and port of the client. */
  const shakingHands = new Map<string, Arrival>()
  const ends = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
  server
    // The connection counts from its first byte: a handshake that never ends holds a socket, too.
    .on("connection", (socket) => {
      const arrival = admit(arrivals, socket)
      if (arrival === undefined) return
      const key = ends(socket)
      shakingHands.set(key, arrival)
      socket.once("close", () => {
        if (shakingHands.get(key) === arrival) shakingHands.delete(key)
      })
    })
    .on("secureConnection", (socket) => {
      const key = ends(socket)
      const arrival = shakingHands.get(key)
      shakingHands.delete(key)
      if (arrival === undefined) socket.destroy()
      else accept(socket, peerOf(socket), arrival)
    })
    // Node.js leaves a socket open whose handshake has taken too long.
    .on("tlsClientError", (_, socket) => void socket.destroy())
}

/** Counts a connection, or cuts it. */
const admit = (arrivals: Arrivals, socket: Socket): Arrival | undefined => {
  const arrival = arrivals.admit(peerOf(socket).address, socket)
  if (arrival === undefined) socket.destroy()
  else socket.once("close", () => arrivals.left(arrival))
  return arrival
}

/** Listens until the scope closes; returns the port. */
const listen = Effect.fnUntraced(function*(host: string, port: number, server: Server) {
  const failed = (cause: unknown) =>
    new ListenError({ message: `The MQTT broker cannot listen on ${host}, port ${port} (${String(cause)})`, cause })
  yield* Effect.acquireRelease(
    Effect.callback<void, ListenError>((resume) => {
      server.once("error", (cause) => resume(Effect.fail(failed(cause))))
      server.listen({ host, port }, () => resume(Effect.void))
    }),
    // Refuses new connections at once; open connections end with the broker.
    () => Effect.sync(() => void server.close())
  )
  return (server.address() as AddressInfo).port
})
