/**
 * The other end of a connection.
 */
import type { ClientCertificate } from "@device-cloud/core"
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"

export interface Peer {
  /** The IP address; IPv4 in its own notation. */
  readonly address: string
  /** Whether nobody on the way can read the connection. Devices get secrets over secure connections only. */
  readonly isSecure: boolean
  /** The client certificate, if there is one that was verified. */
  readonly certificate?: ClientCertificate | undefined
}

/** Returns the peer of a socket, whose TLS handshake is complete if it has one. */
export const peerOf = (socket: Socket): Peer => ({
  address: socket.remoteAddress?.replace(/^::ffff:/, "") ?? "",
  isSecure: socket instanceof TLSSocket,
  certificate: socket instanceof TLSSocket && socket.authorized ? certificateOf(socket) : undefined
})

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
