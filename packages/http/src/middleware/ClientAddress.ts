/**
 * Where a request comes from.
 */
import { addressGroup, clientOrigin, TrustedProxies } from "@device-cloud/core"
import { Context, Effect, Option, Predicate } from "effect"
import type { HttpServerRequest } from "effect/http"

/** The address of the client; IPv4 in its own notation. Empty: not known. */
export const clientAddress = ({ remoteAddress }: HttpServerRequest.HttpServerRequest): string =>
  Option.getOrElse(remoteAddress, () => "").replace(/^::ffff:/, "")

/** The name under which the address of the client is counted. */
export const countedAddress = (request: HttpServerRequest.HttpServerRequest): string =>
  addressGroup(clientAddress(request))

/** Whether the way to the client is secure, as far as this server can know. */
export const isSecureWay = ({ protocol }: HttpServerRequest.HttpServerRequest): boolean => protocol === "https"

/** What the server that handed a request over knows about its connection. */
export interface RequestPeer {
  /** The other end of the connection. Default: not known. */
  readonly address?: string
  /** Whether the connection is encrypted. Default: whether the URL of the request begins with `https:`. */
  readonly secure?: boolean
  /** The client certificate in DER, if the TLS handshake has shown that the client has its key. Default: none. */
  readonly certificate?: Uint8Array
}

/** The connection of a request that did not come over a socket of ours. */
export const GivenPeer: Context.Reference<RequestPeer | undefined> = Context.Reference(
  "@device-cloud/http/GivenPeer",
  { defaultValue: (): RequestPeer | undefined => undefined }
)

/**
 * Makes a function that gives a request the address of its client and, as
 * `protocol`, whether the way to the client is secure; both also behind trusted
 * proxies.
 */
export const makeWithOrigin = Effect.map(
  TrustedProxies,
  (proxies) =>
  (
    request: HttpServerRequest.HttpServerRequest,
    context: Context.Context<never>
  ): HttpServerRequest.HttpServerRequest => {
    const given = Context.get(context, GivenPeer)
    const isSecure = given?.secure ?? isEncrypted(request)
    if (given === undefined && proxies.length === 0 && !isSecure) return request
    const address = given?.address ?? clientAddress(request)
    const { headers } = request
    const origin = clientOrigin(
      { address, isSecure },
      { for: headers["x-forwarded-for"], proto: headers["x-forwarded-proto"] },
      proxies
    )
    return request.modify({
      remoteAddress: origin.address === "" ? Option.none() : Option.some(origin.address),
      peerAddress: address === "" ? Option.none() : Option.some(address),
      protocol: origin.isSecure ? "https" : "http"
    })
  }
)

/** The certificate of the client in DER; undefined: it has presented none, or TLS ends before this server. */
export const clientCertificate = (
  { source }: HttpServerRequest.HttpServerRequest,
  given: RequestPeer | undefined
): Uint8Array | undefined => {
  if (given !== undefined) return given.certificate
  const socket = Predicate.hasProperty(source, "socket") ? source.socket : undefined
  if (!Predicate.hasProperty(socket, "getPeerCertificate") || !Predicate.isFunction(socket.getPeerCertificate)) {
    return undefined
  }
  // Node.js returns null, or an object without members, if there is none.
  const certificate: unknown = socket.getPeerCertificate()
  return Predicate.hasProperty(certificate, "raw") && certificate.raw instanceof Uint8Array
    ? certificate.raw
    : undefined
}

/** Whether the request came over TLS: to a socket of Node.js, or to a URL. */
const isEncrypted = ({ source }: HttpServerRequest.HttpServerRequest): boolean =>
  Predicate.hasProperty(source, "socket")
    ? Predicate.hasProperty(source.socket, "encrypted") && source.socket.encrypted === true
    : Predicate.hasProperty(source, "url") && String(source.url).startsWith("https:")
