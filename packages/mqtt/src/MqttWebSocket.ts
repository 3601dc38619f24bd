/**
 * MQTT over WebSocket on an HTTP server, for browsers and devices that can reach
 * nothing else.
 */
import { Effect, type Scope } from "effect"
import type { IncomingMessage, Server } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { TLSSocket } from "node:tls"
import { createWebSocketStream, WebSocketServer } from "ws"
import { MqttServer } from "./MqttServer.ts"

/** Where the broker is reached on the server. */
const path = "/mqtt"

/** The names under which MQTT 3.1.1 and 3.1 ask for it (MQTT 3.1.1, section 6). */
const protocols = ["mqtt", "mqttv3.1"]

/** Bytes of one WebSocket message; packets of MQTT may span several. */
const maxPayload = 512 * 1024

/**
 * Takes WebSocket connections to `/mqtt` of the server, until the scope closes.
 * Other requests for an upgrade go to the server's own listeners.
 */
export const attach: (server: Server) => Effect.Effect<void, never, MqttServer | Scope.Scope> = Effect.fnUntraced(
  function*(server) {
    const broker = yield* MqttServer
    const webSockets = new WebSocketServer({
      noServer: true,
      maxPayload,
      handleProtocols: (offered) => protocols.find((protocol) => offered.has(protocol)) ?? false
    })

    const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): boolean => {
      if (request.url?.split("?")[0] !== path) return false
      webSockets.handleUpgrade(request, socket, head, (webSocket) => {
        const { remoteAddress = "" } = request.socket
        ;(request.socket as Socket).setNoDelay(true)
        const stream = createWebSocketStream(webSocket)
        // The broker hears of the end by `close`.
        stream.on("error", () => {})
        broker.accept(stream, remoteAddress, request.socket instanceof TLSSocket)
      })
      return true
    }

    // Every listener of `upgrade` would answer: the one that is asked must be found before.
    const emit = server.emit.bind(server) as (event: string, ...args: ReadonlyArray<unknown>) => boolean
    const dispatch = (event: string, ...args: ReadonlyArray<unknown>): boolean =>
      (event === "upgrade" && upgrade(...args as Parameters<typeof upgrade>)) || emit(event, ...args)

    yield* Effect.acquireRelease(
      Effect.sync(() => {
        server.emit = dispatch as Server["emit"]
      }),
      () =>
        Effect.sync(() => {
          server.emit = emit as Server["emit"]
          for (const client of webSockets.clients) client.terminate()
        })
    )
  }
)
