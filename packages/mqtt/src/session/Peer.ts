/**
 * The other end of a connection.
 */
import { type AddressRange, type ClientCertificate, type ClientOrigin, clientOrigin } from "@device-cloud/core"
import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"

/** Devices get secrets over secure connections only. */
export interface Peer extends ClientOrigin {
  /** The client certificate, if there is one that was verified. */
  readonly certificate?: ClientCertificate | undefined
}

/** Returns the peer of a socket, whose TLS handshake is complete if it has one. */
export const peerOf = (socket: Socket): Peer => ({
  address: socket.remoteAddress?.replace(/^::ffff:/, "") ?? "",
  isSecure: socket instanceof TLSSocket,
  certificate: socket instanceof TLSSocket && socket.authorized ? certificateOf(socket) : undefined
})

/** Returns the client of a request, also behind trusted proxies; a certificate of a proxy is not that of the client. */
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
  return origin.address === peer.address ? { ...peer, ...origin } : origin
}

/** A header that came more than once, as one list. */
const textOf = (header: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof header === "object" ? header.join(",") : header

/** A resumed session without a certificate counts as authorized, too. */
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
