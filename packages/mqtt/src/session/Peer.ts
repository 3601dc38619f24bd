/**
 * The other end of a connection.
 */
import { type AddressRange, type ClientCertificate, type ClientOrigin, clientOrigin } from "@device-cloud/core"
import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"

/** Devices get secrets over secure connections only. */
export interface Peer extends ClientOrigin {
  /** Whether the connection is a WebSocket. */
  readonly isWebSocket?: boolean
  /** The client certificate; the handshake has shown that the client has its key. */
  readonly certificate?: ClientCertificate | undefined
  /** Whether one of `clientAuthorities` of the listener has issued the certificate. */
  readonly isCertificateTrusted?: boolean
}

/** Returns the peer of a socket, whose TLS handshake is complete if it has one. */
export const peerOf = (socket: Socket): Peer => {
  const address = socket.remoteAddress?.replace(/^::ffff:/, "") ?? ""
  return socket instanceof TLSSocket
    ? { address, isSecure: true, certificate: certificateOf(socket), isCertificateTrusted: socket.authorized }
    : { address, isSecure: false }
}

/** Returns the client of a request for a WebSocket, also behind trusted proxies; a certificate of a proxy is not that of the client. */
export const peerOfRequest = (
  { headers, socket }: IncomingMessage,
  proxies: ReadonlyArray<AddressRange>
): Peer => {
  const peer = peerOf(socket)
  const origin = clientOrigin(
    peer,
    { for: textOf(headers["x-forwarded-for"]), proto: textOf(headers["x-forwarded-proto"]) },
    proxies
  )
  return { ...origin.address === peer.address ? { ...peer, ...origin } : origin, isWebSocket: true }
}

/** What operators read about how the peer is connected. */
export const transportOf = ({ isWebSocket = false }: Peer): string => isWebSocket ? "websocket" : "mqtt"

/** A header that came more than once, as one list. */
const textOf = (header: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof header === "object" ? header.join(",") : header

const certificateOf = (socket: TLSSocket): ClientCertificate | undefined => {
  const certificate = socket.getPeerCertificate()
  if (!certificate?.raw) return undefined
  const commonName: unknown = certificate.subject.CN
  return {
    der: certificate.raw,
    fingerprint: certificate.fingerprint256.replaceAll(":", "").toLowerCase(),
    commonName: typeof commonName === "string" ? commonName : undefined
  }
}
