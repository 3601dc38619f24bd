/**
 * Lets requests wait that come before the API is there, and answers those that never
 * reach it with an envelope: malformed or oversized ones, and those that come while
 * the server stops.
 */
import { securityHeaders } from "@device-cloud/http"
import { randomBytes } from "node:crypto"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Draining } from "./Draining.ts"

const malformed = { status: "400 Bad Request", code: 40000, message: "The request is not well formed" }

const unparsed: Readonly<Record<string, typeof malformed>> = {
  HPE_HEADER_OVERFLOW: {
    status: "431 Request Header Fields Too Large",
    code: 40000,
    message: "The header of the request is too large"
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: "408 Request Timeout",
    code: 40000,
    message: "The request did not arrive in time"
  }
}

const stopping = { code: 50300, message: "The server is stopping; try again" }

const securityLines = Object.entries(securityHeaders).map(([name, value]) => `${name}: ${value}\r\n`).join("")

const newRequestId = (): string => randomBytes(8).toString("hex")

/** Attaches the listeners. `watch` is called with each response. */
export const answerUnservedRequests = (server: Server, { watch }: Pick<Draining["Service"], "watch">): void => {
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (error.code === "ECONNRESET" || !socket.writable) return
    const { code, message, status } = unparsed[error.code ?? ""] ?? malformed
    const body = JSON.stringify({ code, message })
    // The client may never end its side.
    socket.once("finish", () => socket.destroy())
    socket.end(
      `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n` +
        `X-Request-Id: ${newRequestId()}\r\n${securityLines}Connection: close\r\n\r\n${body}`
    )
  })
  // The server listens before the API is attached: a worker gets connections from then on.
  let early: Array<[IncomingMessage, ServerResponse]> | undefined = []
  server.on("request", (request, response) => {
    watch(response)
    if (server.listenerCount("request") > 1) return
    if (early !== undefined) return void early.push([request, response])
    response.writeHead(503, {
      ...securityHeaders,
      "Content-Type": "application/json",
      "Retry-After": "1",
      "X-Request-Id": newRequestId()
    }).end(JSON.stringify(stopping))
  })
  server.on("checkContinue", (request, response) => {
    if (server.listenerCount("checkContinue") > 1) return watch(response)
    // What Node.js does if nobody listens.
    response.writeContinue()
    server.emit("request", request, response)
  })
  // An unknown `Expect` header does not change the request.
  server.on("checkExpectation", (request, response) => server.emit("request", request, response))
  const attached = (event: string) => {
    if (event !== "request" || early === undefined) return
    const waiting = early
    early = undefined
    server.off("newListener", attached)
    // The listener is there when this one has returned.
    setImmediate(() => {
      for (const [request, response] of waiting) if (!response.destroyed) server.emit("request", request, response)
    })
  }
  server.on("newListener", attached)
}
