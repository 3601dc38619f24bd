/**
 * One connection to NATS, until it breaks.
 */
import {
  connect as open,
  credsAuthenticator,
  type NatsConnection,
  type NodeConnectionOptions
} from "@nats-io/transport-node"
import { Effect, Redacted, Schema } from "effect"
import { identityCheck } from "./ServerIdentity.ts"

export interface ConnectionOptions {
  /**
   * `nats://host:4222`, or `tls://host:4222`, which insists on TLS. Several servers of
   * one cluster are separated by commas. User and password are in `credentials`.
   */
  readonly url: string
  /** Who the cloud is: the text of a credentials file, a token, or a user with a password. */
  readonly credentials?:
    | { readonly file: Redacted.Redacted }
    | { readonly token: Redacted.Redacted }
    | { readonly user: string; readonly password: Redacted.Redacted }
    | undefined
  /** In PEM: whom to trust in place of the authorities of Node.js, and the certificate of the cloud with its key. */
  readonly tls?:
    | { readonly ca?: string | undefined; readonly certificate?: string | undefined; readonly key?: string | undefined }
    | undefined
}

/** No server of the URL lets the cloud in. */
export class NatsUnreachable extends Schema.TaggedError<NatsUnreachable>()("NatsUnreachable", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/** Throws a `TypeError` if there is no URL, such as that of a variable of the environment that is not set. */
export const checkUrl = ({ url }: ConnectionOptions): void => {
  if (typeof url !== "string" || url === "") {
    throw new TypeError(`url: expected an address such as nats://127.0.0.1:4222, not ${String(url)}`)
  }
}

/** Milliseconds until a server that does not reply counts as lost. */
const timeout = 5000

/**
 * Connects. The connection ends when it breaks: it never comes back by itself, so
 * that whoever uses it knows what may be lost. It hears nothing of what it publishes.
 */
export const connect = (options: ConnectionOptions): Effect.Effect<NatsConnection, NatsUnreachable> =>
  Effect.tryPromise({
    try: async (signal) => {
      const connection = await open(connectionOptions(options))
      // Nobody waits for it any more.
      if (signal.aborted) await connection.close()
      return connection
    },
    catch: (cause) =>
      new NatsUnreachable({
        message: `NATS at ${withoutSecrets(options.url)} cannot be reached: ${
          cause instanceof Error ? cause.message : String(cause)
        }`,
        cause
      })
  })

/** The URL without what somebody may have written before the host. */
const withoutSecrets = (url: string): string => url.replace(/\/\/[^/,]*@/g, "//")

/** The client reads lines that end as those of Unix, the last one, too. */
const linesOf = (text: string): Uint8Array => new TextEncoder().encode(`${text.replaceAll("\r\n", "\n")}\n`)

const connectionOptions = ({ credentials, tls, url }: ConnectionOptions): NodeConnectionOptions => {
  const servers = url.split(",").map((server) => server.trim())
  const encrypted = tls !== undefined || servers.some((server) => server.startsWith("tls:"))
  const { ca, certificate: cert, key } = tls ?? {}
  // The client passes on to `tls.connect` what its types do not name.
  const identity = { checkServerIdentity: identityCheck(servers) }
  return {
    servers,
    name: "device-cloud",
    reconnect: false,
    noEcho: true,
    timeout,
    pingInterval: timeout,
    ...encrypted
      ? {
        tls: {
          ...identity,
          ...ca === undefined ? {} : { ca },
          ...cert === undefined ? {} : { cert },
          ...key === undefined ? {} : { key }
        }
      }
      : {},
    ...credentials === undefined
      ? {}
      : "file" in credentials
      ? { authenticator: credsAuthenticator(linesOf(Redacted.value(credentials.file))) }
      : "token" in credentials
      ? { token: Redacted.value(credentials.token) }
      : { user: credentials.user, pass: Redacted.value(credentials.password) }
  }
}
