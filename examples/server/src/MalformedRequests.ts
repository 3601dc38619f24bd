/**
 * Requests that are not HTTP, or too large for it, get an envelope as well.
 */
import { randomBytes } from "node:crypto"
import type { Server } from "node:http"

const answers: Readonly<Record<string, readonly [status: string, code: number, message: string]>> = {
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", 40000, "The header of the request is too large"],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", 40000, "The request did not arrive in time"]
}

const malformed = ["400 Bad Request", 40000, "The request is not well formed"] as const

export const answerMalformedRequests = (server: Server): void => {
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (error.code === "ECONNRESET" || !socket.writable) return
    const [status, code, message] = answers[error.code ?? ""] ?? malformed
    const body = JSON.stringify({ code, message })
    socket.end(
      `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n` +
        `X-Request-Id: ${randomBytes(8).toString("hex")}\r\nConnection: close\r\n\r\n${body}`
    )
  })
  // An expectation that nobody knows changes nothing about the request.
  server.on("checkExpectation", (request, response) => server.emit("request", request, response))
}
