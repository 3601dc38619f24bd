/**
 * Where a request or a connection comes from, also behind proxies
 * (docs/operations/README.md#proxies).
 */
import { Context, Result } from "effect"
import { type AddressRange, isInRange, parseAddress, parseRange, plainAddress } from "./NetworkAddress.ts"

/** The client of a request or a connection. */
export interface ClientOrigin {
  /** The IP address; IPv4 in its own notation. Empty: not known. */
  readonly address: string
  /** Whether nobody on the way can read along. */
  readonly isSecure: boolean
}

/** What proxies say about the client, in the headers of a request. */
export interface ForwardedHeaders {
  /** `X-Forwarded-For`: the client, then each proxy that has passed the request on. */
  readonly for: string | undefined
  /** `X-Forwarded-Proto`. */
  readonly proto: string | undefined
}

/**
 * The proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` count, for HTTP and
 * for MQTT over WebSocket. Default: none.
 *
 * ```ts
 * const Proxies = Layer.succeed(TrustedProxies, Result.getOrThrow(parseTrustedProxies(["10.0.0.0/8"])))
 * ```
 */
export const TrustedProxies: Context.Reference<ReadonlyArray<AddressRange>> = Context.Reference(
  "@device-cloud/core/kernel/TrustedProxies",
  { defaultValue: (): ReadonlyArray<AddressRange> => [] }
)

/** Reads addresses and networks. Fails with the first text that is neither. */
export const parseTrustedProxies = (
  texts: ReadonlyArray<string>
): Result.Result<ReadonlyArray<AddressRange>, string> => {
  const ranges: Array<AddressRange> = []
  for (const text of texts) {
    const range = parseRange(text.trim())
    if (range === undefined) return Result.fail(text)
    ranges.push(range)
  }
  return Result.succeed(ranges)
}

/** Characters of a header that are read, from its end. */
const maxHeaderLength = 2048

/**
 * Returns the client. `peer` is the other end of the connection. If it is a
 * trusted proxy, the last entry of `X-Forwarded-For` that is no trusted proxy is
 * the client: who stands further left is only what that client says. An entry
 * that is no address ends the search, and the proxy to its right counts. The way
 * is secure if each entry of `X-Forwarded-Proto` is `https` or `wss`.
 */
export const clientOrigin = (
  peer: ClientOrigin,
  forwarded: ForwardedHeaders,
  proxies: ReadonlyArray<AddressRange>
): ClientOrigin => {
  const address = plainAddress(peer.address)
  if (!isTrustedProxy(address, proxies)) return { address, isSecure: peer.isSecure }
  return {
    address: forwarded.for === undefined ? address : walk(forwarded.for, address, proxies),
    isSecure: forwarded.proto === undefined ? peer.isSecure : isSecureWay(forwarded.proto)
  }
}

/** Whether the address, IPv4 also in the notation of IPv6, is one of `proxies`. */
export const isTrustedProxy = (address: string, proxies: ReadonlyArray<AddressRange>): boolean => {
  if (proxies.length === 0) return false
  const bytes = parseAddress(address)
  return bytes !== undefined && proxies.some((range) => isInRange(bytes, range))
}

/** Walks from the right until an entry is no trusted proxy. */
const walk = (header: string, nearest: string, proxies: ReadonlyArray<AddressRange>): string => {
  let client = nearest
  let end = header.length
  const start = Math.max(0, end - maxHeaderLength)
  while (end > start) {
    const comma = header.lastIndexOf(",", end - 1)
    const entry = comma < start && start > 0 ? undefined : addressOfEntry(header.slice(comma + 1, end).trim())
    if (entry === undefined) return client
    client = entry
    if (!isTrustedProxy(entry, proxies)) return client
    end = comma
  }
  return client
}

/** The address of an entry, which may have a port, and brackets around IPv6; undefined: it is none. */
const addressOfEntry = (entry: string): string | undefined => {
  const [, bracketed, v4] = /^(?:\[([^\]]*)\]|([\d.]+))(?::\d{1,5})?$/.exec(entry) ?? []
  const address = plainAddress(bracketed ?? v4 ?? entry)
  return parseAddress(address) === undefined ? undefined : address
}

const isSecureWay = (header: string): boolean =>
  header.length <= maxHeaderLength && header.split(",").every((proto) => /^(?:https|wss)$/i.test(proto.trim()))
