/**
 * Whether the certificate of a NATS server is one for it.
 */
import { isIP } from "node:net"
import { checkServerIdentity, type PeerCertificate } from "node:tls"

const hostOf = (server: string): string =>
  new URL(server.includes("://") ? server : `nats://${server}`).hostname.replace(/^\[|\]$/g, "")

/**
 * Returns the check of the certificates of `servers`, addresses as in a URL. The
 * client of NATS names a server to TLS only by a name: for one that is known by its
 * IP address, Node.js would check whether the certificate is for `localhost`. It has
 * to be for one of the IP addresses of `servers`.
 */
export const identityCheck = (servers: ReadonlyArray<string>) => {
  const hosts = servers.map(hostOf).filter((host) => host === "localhost" || isIP(host) !== 0)
  return (name: string, certificate: PeerCertificate): Error | undefined => {
    const expected = name === "localhost" && hosts.length > 0 ? hosts : [name]
    const errors = expected.map((host) => checkServerIdentity(host, certificate))
    return errors.includes(undefined) ? undefined : errors[0]
  }
}
