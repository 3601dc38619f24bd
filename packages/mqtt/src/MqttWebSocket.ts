/**
 * MQTT over WebSocket on an HTTP server, for browsers and for devices behind
 * firewalls.
 */
import { Effect, type Scope } from "effect"
import type { IncomingMessage, Server } from "node:http"
import type { Duplex } from "node:stream"
import { createWebSocketStream, WebSocketServer } from "ws"
import { MqttServer } from "./MqttServer.ts"
import { peerOf } from "./session/Peer.ts"

/** The path of the broker on the server. */
const path = "/mqtt"

/** The subprotocols of MQTT 3.1.1 and 3.1 (MQTT 3.1.1, section 6). */
const protocols = ["mqtt", "mqttv3.1"]

/** Bytes in one WebSocket message; an MQTT packet may span several. */
const maxPayload = 512 * 1024

/**
 * Takes WebSocket connections to `/mqtt` of the server until the scope closes.
 * Other upgrade requests go to the server's own listeners; if it has none, they get 404.
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
        request.socket.setNoDelay(true)
        const stream = createWebSocketStream(webSocket)
        // The broker learns of the end from `close`.
        stream.on("error", () => {})
        broker.accept(stream, peerOf(request.socket))
      })
      return true
    }

    // Every listener of `upgrade` would answer the request, so ours is asked before the event is emitted.
    const emit = server.emit.bind(server) as (event: string, ...args: ReadonlyArray<unknown>) => boolean
    const dispatch = (event: string, ...args: ReadonlyArray<unknown>): boolean =>
      (event === "upgrade" && upgrade(...args as Parameters<typeof upgrade>)) || emit(event, ...args)

    // Node.js upgrades nothing on a server without such a listener.
    const refuse = (_: IncomingMessage, socket: Duplex) => {
      if (server.listenerCount("upgrade") === 1) socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n")
    }

    yield* Effect.acquireRelease(
      Effect.sync(() => {
        server.on("upgrade", refuse)
        server.emit = dispatch as Server["emit"]
      }),
      () =>
        Effect.sync(() => {
          server.emit = emit as Server["emit"]
          server.off("upgrade", refuse)
          for (const client of webSockets.clients) client.terminate()
        })
    )
  }
)
