/**
 * The HTTP server over TLS: another listener of the same server. Its handshakes take
 * turns, as those of the broker do.
 */
import { HandshakeTurns, modernTls, renew, type TlsOptions } from "@device-cloud/mqtt"
import { HttpServer } from "@device-cloud/platform-node"
import { Effect, Stream } from "effect"
import type { Server, ServerOptions } from "node:http"
import { createServer as createSecureServer } from "node:https"
import { type AddressInfo, createServer as createTcpServer } from "node:net"
import { InvalidConfig } from "./ServerConfig.ts"

export interface Options extends Pick<TlsOptions, "port" | "certificate" | "key" | "renewals"> {
  readonly host: string
  /** Whether clients are asked for a certificate. */
  readonly clientCertificates: boolean
  /** Connections at once, as `Limits` of the plain server. */
  readonly connections: number
  /** The options of the plain server. */
  readonly server: ServerOptions
}

/** How long a client may take to say hello, to wait for its turn, and to shake hands, milliseconds each. */
const handshakeTime = 10_000

/** What the plain server does with a connection that has been decrypted. */
const events = ["request", "upgrade", "clientError", "checkExpectation"] as const

/** Hands what comes over TLS to `http` until the scope closes. Returns the URL. */
export const listen = Effect.fnUntraced(function*(http: Server, options: Options) {
  const { certificate, clientCertificates, connections, host, key, port, renewals } = options
  const secure = ({ certificate, key }: Pick<Options, "certificate" | "key">) => ({
    ...modernTls,
    cert: certificate,
    key,
    // The cloud itself checks certificates of devices.
    ...clientCertificates ? { ca: [], requestCert: true, rejectUnauthorized: false } : {}
  })
  const invalid = (variables: string, cause: unknown) =>
    new InvalidConfig({ message: `${variables}: ${String(cause)}` })
  const server = yield* Effect.try({
    try: () =>
      createSecureServer({ ...options.server, ...secure({ certificate, key }), handshakeTimeout: handshakeTime }),
    catch: (cause) => invalid("TLS_CERT_FILE, TLS_KEY_FILE", cause)
  })
  const door = createTcpServer({ noDelay: true })
  const limited = yield* HttpServer.limitConnections(server, { connections }, door)
  const turns = new HandshakeTurns(handshakeTime, (socket) => void server.emit("connection", socket))
  door.on("connection", (socket) => {
    if (!socket.destroyed) turns.add(socket, { isKnown: limited.isKnown(socket), holds: () => {} })
  })
  let underWay = 0
  let hasEnded = () => {}
  server.on("request", ({ socket }, response) => {
    limited.began(socket, response)
    underWay++
    response.once("close", () => {
      if (--underWay === 0) hasEnded()
    })
  })
  server.on("tlsClientError", (_, socket) => void socket.destroy())
  for (const event of events) server.on(event, (...args: ReadonlyArray<unknown>) => void http.emit(event, ...args))
  // The plain server is not closed before the requests over TLS have ended.
  const close = http.close.bind(http)
  http.close = (closed) => {
    door.close()
    server.close()
    return close((error) => {
      hasEnded = () => closed?.(error)
      if (underWay === 0) hasEnded()
    })
  }
  yield* Effect.acquireRelease(
    Effect.callback<void, InvalidConfig>((resume) => {
      door.once("error", (cause) => resume(Effect.fail(invalid("HTTP_HOST, HTTPS_PORT", cause))))
      door.listen({ host, port, backlog: HttpServer.backlog }, () => {
        // Node.js looks after the times of requests from then on.
        server.emit("listening")
        resume(Effect.void)
      })
    }),
    () =>
      Effect.sync(() => {
        door.close()
        server.close()
        server.closeAllConnections()
      })
  )
  const { port: listening } = door.address() as AddressInfo
  if (renewals !== undefined) {
    const renewed = renew(server, Stream.map(renewals, secure))
    yield* Effect.forkScoped(Effect.annotateLogs(renewed, { port: listening }))
  }
  return `https://${host.includes(":") ? `[${host}]` : host}:${listening}`
})
