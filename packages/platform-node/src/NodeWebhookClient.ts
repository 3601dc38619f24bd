/**
 * Sends webhooks with `node:http` and `node:https`. Checks the address that a name
 * resolves to when it connects, and connects to that same address
 * (docs/decisions/0021-webhooks-and-private-addresses.md).
 */
import {
  AllowPrivateWebhooks,
  maxResponse,
  WebhookClient,
  WebhookError,
  type WebhookRequest,
  type WebhookResponse
} from "@device-cloud/core"
import { Deferred, Effect, Exit, Layer } from "effect"
import dns, { type LookupAddress } from "node:dns"
import { type IncomingMessage, request as httpRequest } from "node:http"
import { request as httpsRequest } from "node:https"
import { BlockList, isIP, type LookupFunction, type Socket } from "node:net"

/** Networks without public hosts, from the special-purpose address registries of IANA. */
const special = new BlockList()
for (
  const [network, prefix] of [
    ["0.0.0.0", 8],
    ["10.0.0.0", 8],
    ["100.64.0.0", 10],
    ["127.0.0.0", 8],
    ["169.254.0.0", 16],
    ["172.16.0.0", 12],
    ["192.0.0.0", 24],
    ["192.0.2.0", 24],
    ["192.88.99.0", 24],
    ["192.168.0.0", 16],
    ["198.18.0.0", 15],
    ["198.51.100.0", 24],
    ["203.0.113.0", 24],
    ["224.0.0.0", 4],
    ["240.0.0.0", 4]
  ] as const
) special.addSubnet(network, prefix, "ipv4")
/** The global unicast addresses of IPv6: public, except for those in `special`. */
const global = new BlockList()
global.addSubnet("2000::", 3, "ipv6")
for (const [network, prefix] of [["2001::", 23], ["2001:db8::", 32], ["2002::", 16], ["3fff::", 20]] as const) {
  special.addSubnet(network, prefix, "ipv6")
}

/** Whether the text is an IP address of the public internet. */
export const isPublicAddress = (address: string): boolean => {
  switch (isIP(address)) {
    case 4:
      return !special.check(address, "ipv4")
    case 6:
      return global.check(address, "ipv6") && !special.check(address, "ipv6")
    default:
      return false
  }
}

/**
 * The name of the host stands for nothing, or for an address that is not public.
 * Both read the same, and both are tried again: otherwise webhooks would tell
 * which names and addresses the network of the server has.
 */
const unresolved = () =>
  new WebhookError({ reason: "unreachable", message: "The name of the host leads to no public address" })

/** The host of a URL, without the brackets around an IPv6 address. */
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, "$1")

const refuse = (allowsPrivate: boolean) => (text: string): string | undefined => {
  if (!URL.canParse(text)) return "Expected an http or https address"
  const url = new URL(text)
  if (url.protocol !== "http:" && url.protocol !== "https:") return "Expected an http or https address"
  if (url.username !== "" || url.password !== "") return "Expected an address without user name and password"
  const host = hostOf(url)
  const isPrivate = isIP(host) === 0 ? /(?:^|\.)localhost\.?$/i.test(host) : !isPublicAddress(host)
  return isPrivate && !allowsPrivate ? "Expected a public address" : undefined
}

/** Addresses of one name that are tried. */
const maxAddresses = 4

/** Looks a name up, until `cancel`. */
interface Names {
  readonly addresses: (hostname: string) => Promise<ReadonlyArray<LookupAddress>>
  readonly cancel: () => void
}

/** As other programs do, which knows the names of the private network. Few look-ups of the process run at a time. */
const systemNames = (): Names => ({
  addresses: (hostname) => dns.promises.lookup(hostname, { all: true }),
  cancel: () => {}
})

/** Asks the name servers: names that nobody answers for hold up no other look-up of the process. */
const publicNames = (): Names => {
  const resolver = new dns.promises.Resolver({ timeout: 1500, tries: 2 })
  // Those that the program has set, if it has. By its own name, `getServers` says what they were before.
  resolver.setServers(dns.getServers())
  const ofFamily = (found: PromiseSettledResult<ReadonlyArray<string>>, family: 4 | 6) =>
    found.status === "fulfilled" ? found.value.map((address) => ({ address, family })) : []
  return {
    addresses: async (hostname) => {
      const [four, six] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
      const [fours, sixes] = [ofFamily(four, 4), ofFamily(six, 6)]
      // In turns: a network may have one kind alone.
      return Array.from({ length: Math.max(fours.length, sixes.length) }, (_, i) => [fours[i], sixes[i]]).flat().filter(
        (address) => address !== undefined
      )
    },
    cancel: () => resolver.cancel()
  }
}

/** Resolves a name. Fails if any of its addresses is not public, and if `check` fails. */
const checkedLookup = (
  names: Names,
  allowsPrivate: boolean,
  check: (addresses: ReadonlyArray<string>) => Error | null
): LookupFunction =>
(hostname, options, callback) => {
  const fail = (error: Error) => callback(error, "", 0)
  const succeed = (all: ReadonlyArray<LookupAddress>) => {
    const isUsable = all.length > 0 && (allowsPrivate || all.every(({ address }) => isPublicAddress(address)))
    if (!isUsable) return fail(unresolved())
    const addresses = all.slice(0, maxAddresses)
    const refused = check(addresses.map(({ address }) => address))
    if (refused !== null) return fail(refused)
    return options.all === true
      ? callback(null, addresses)
      : callback(null, addresses[0]!.address, addresses[0]!.family)
  }
  names.addresses(hostname).then(succeed, fail)
}

const notAdmitted = () =>
  new WebhookError({ reason: "not-admitted", message: "The address gets as many webhooks as it may" })

/** Asks the request about addresses. */
const admission = (url: URL, { admits }: WebhookRequest) => (addresses: ReadonlyArray<string>): WebhookError | null => {
  const port = url.port || (url.protocol === "https:" ? "443" : "80")
  const isAdmitted = admits(addresses.map((address) => `${isIP(address) === 6 ? `[${address}]` : address}:${port}`))
  return isAdmitted ? null : notAdmitted()
}

/** Reads at most `maxResponse` bytes of the response. */
const read = (response: IncomingMessage, done: (body: string) => void): void => {
  const chunks: Array<Buffer> = []
  let length = 0
  const finish = () => done(Buffer.concat(chunks).subarray(0, maxResponse).toString("utf8"))
  response.on("data", (chunk: Buffer) => {
    chunks.push(chunk)
    length += chunk.length
    if (length >= maxResponse) finish()
  })
  response.on("end", finish)
}

const within = <A>(effect: Effect.Effect<A, WebhookError>, millis: number, what: string) =>
  Effect.timeoutOrElse(effect, {
    duration: millis,
    orElse: () =>
      Effect.fail(new WebhookError({ reason: "timeout", message: `No ${what} within ${millis / 1000} seconds` }))
  })

/** Messages of Node.js carry the address that a name stands for: the code says enough. */
const unreachable = (error: NodeJS.ErrnoException): WebhookError =>
  error instanceof WebhookError
    ? error
    : new WebhookError({ reason: "unreachable", message: `The connection failed (${error.code ?? error.name})` })

const exchange = (
  url: URL,
  webhook: WebhookRequest,
  allowsPrivate: boolean,
  connected: Deferred.Deferred<void>
) =>
  Effect.callback<WebhookResponse, WebhookError>((resume) => {
    const { body, headers, method } = webhook
    const check = admission(url, webhook)
    // Node.js looks up names only.
    const refused = isIP(hostOf(url)) === 0 ? null : check([hostOf(url)])
    if (refused !== null) return resume(Effect.fail(refused))
    const isSecure = url.protocol === "https:"
    const names = allowsPrivate ? systemNames() : publicNames()
    const request = (isSecure ? httpsRequest : httpRequest)(url, {
      method,
      headers: { ...headers, "content-length": Buffer.byteLength(body) },
      // A new connection, made to the address that `lookup` has checked.
      agent: false,
      lookup: checkedLookup(names, allowsPrivate, check)
    })
    const fail = (error: Error) => resume(Effect.fail(unreachable(error)))
    const succeed = ({ statusCode }: IncomingMessage, body: string) => {
      resume(Effect.succeed({ status: statusCode ?? 0, body }))
      // Who has answered may not have read the request, and need not.
      request.destroy()
    }
    request.on("socket", (socket: Socket) => {
      socket.once(isSecure ? "secureConnect" : "connect", () => Deferred.doneUnsafe(connected, Exit.void))
    })
    request.on("error", fail)
    request.on("response", (response) => {
      response.on("error", fail)
      read(response, (body) => succeed(response, body))
    })
    request.on("upgrade", (response) => succeed(response, ""))
    request.end(body)
    return Effect.sync(() => {
      names.cancel()
      request.destroy()
    })
  })

const send = (allowsPrivate: boolean) =>
  Effect.fnUntraced(function*(request: WebhookRequest): Effect.fn.Return<WebhookResponse, WebhookError> {
    const refused = refuse(allowsPrivate)(request.url)
    if (refused !== undefined) return yield* new WebhookError({ reason: "forbidden", message: refused })
    const connected = yield* Deferred.make<void>()
    const connection = within(Deferred.await(connected), request.connectTimeout, "connection")
    return yield* exchange(new URL(request.url), request, allowsPrivate, connected).pipe(
      Effect.raceFirst(Effect.andThen(connection, Effect.never)),
      (response) => within(response, request.requestTimeout, "answer")
    )
  })

export const layer: Layer.Layer<WebhookClient> = Layer.effect(
  WebhookClient,
  Effect.map(AllowPrivateWebhooks, (allowsPrivate) => ({ refuse: refuse(allowsPrivate), send: send(allowsPrivate) }))
)
