/**
 * MQTT over WebSocket on an HTTP server, for browsers and for devices behind
 * firewalls.
 */
import { TrustedProxies } from "@device-cloud/core"
import { Effect, type Scope } from "effect"
import type { IncomingMessage, Server } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { createWebSocketStream, WebSocketServer } from "ws"
import { type Admission, MqttServer } from "./MqttServer.ts"
import { maxArrivalBytes } from "./session/Arrivals.ts"
import { peerOfRequest } from "./session/Peer.ts"

/** The path of the broker on the server. */
const path = "/mqtt"

/** The subprotocols of MQTT 3.1.1 and 3.1 (MQTT 3.1.1, section 6). */
const protocols = ["mqtt", "mqttv3.1"]

/** Bytes in one WebSocket message; an MQTT packet may span several. */
const maxPayload = 512 * 1024

/**
 * Takes WebSocket connections to `/mqtt` of the server until the scope closes.
 * Behind `TrustedProxies` of the core, `X-Forwarded-For` and `-Proto` say where a
 * client comes from. Other upgrade requests go to the server's own listeners; if it has none, they get 404.
 */
export const attach: (server: Server) => Effect.Effect<void, never, MqttServer | Scope.Scope> = Effect.fnUntraced(
  function*(server) {
    const broker = yield* MqttServer
    const proxies = yield* TrustedProxies
    const webSockets = new WebSocketServer({
      noServer: true,
      maxPayload,
      handleProtocols: (offered) => protocols.find((protocol) => offered.has(protocol)) ?? false
    })

    // A handshake that is none, for example of an unknown version.
    webSockets.on("wsClientError", (_, socket) => refuse(socket, "400 Bad Request", "Sec-WebSocket-Version: 13, 8\r\n"))

    const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): boolean => {
      if (request.url?.split("?")[0] !== path) return false
      const peer = peerOfRequest(request, proxies)
      const admission = broker.admit(peer.address, request.socket)
      if (admission === undefined) {
        refuse(socket, "503 Service Unavailable", "Retry-After: 1\r\n")
        return true
      }
      socket.once("close", admission.left)
      // It may end before its turn.
      socket.on("error", () => {})
      admission.inTurn(() =>
        webSockets.handleUpgrade(request, socket, head, (webSocket) => {
          limitArriving(admission, request.socket, head.length)
          request.socket.setNoDelay(true)
          const stream = createWebSocketStream(webSocket)
          // The broker learns of the end from `close`.
          stream.on("error", () => {})
          // MQTT has binary messages alone (MQTT 3.1.1, section 6). The stream would take the others, too.
          webSocket.prependListener("message", (_, isBinary) => {
            if (!isBinary) stream.destroy()
          })
          admission.accept(stream, peer)
        })
      )
      return true
    }

    // Every listener of `upgrade` would answer the request, so ours is asked before the event is emitted.
    const emit = server.emit.bind(server) as (event: string, ...args: ReadonlyArray<unknown>) => boolean
    const dispatch = (event: string, ...args: ReadonlyArray<unknown>): boolean =>
      (event === "upgrade" && upgrade(...args as Parameters<typeof upgrade>)) || emit(event, ...args)

    // Node.js upgrades nothing on a server without such a listener.
    const refuseOthers = (_: IncomingMessage, socket: Duplex) => {
      if (server.listenerCount("upgrade") === 1) refuse(socket, "404 Not Found")
    }

    yield* Effect.acquireRelease(
      Effect.sync(() => {
        server.on("upgrade", refuseOthers)
        server.emit = dispatch as Server["emit"]
      }),
      () =>
        Effect.sync(() => {
          server.emit = emit as Server["emit"]
          server.off("upgrade", refuseOthers)
          for (const client of webSockets.clients) client.terminate()
        })
    )
  }
)

/** The headers with which responses keep browsers from running or framing them, as those of the API. */
const securityLines = "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n" +
  "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"

/** Responds to a request that becomes no WebSocket, and ends its connection. */
const refuse = (socket: Duplex, status: string, headers = ""): void => {
  // Nobody may be left to read it.
  socket.on("error", () => {})
  // The client may never end its side.
  socket.once("finish", () => socket.destroy())
  socket.end(`HTTP/1.1 ${status}\r\n${headers}${securityLines}Content-Length: 0\r\nConnection: close\r\n\r\n`)
}

/**
 * Ends a connection that sends too much before its device is authenticated: an
 * incomplete WebSocket message waits in memory and never reaches the broker.
 */
const limitArriving = (admission: Admission, socket: Socket, before: number): void => {
  let arrived = before
  admission.holds(arrived)
  const count = (chunk: Buffer) => {
    if (admission.isAuthenticated()) {
      socket.off("data", count)
      return
    }
    // What comes together with the CONNECT may wait for the CONNACK.
    if (arrived > maxArrivalBytes) socket.destroy()
    arrived += chunk.length
    admission.holds(arrived)
  }
  socket.on("data", count)
}
