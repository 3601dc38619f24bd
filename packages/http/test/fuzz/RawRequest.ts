/**
 * Requests that no client of good manners would send, on connections that are
 * kept, and what comes back.
 */
import { Effect, type Scope } from "effect"
import { HttpServer } from "effect/http"
import { Agent, type OutgoingHttpHeaders, request as httpRequest } from "node:http"

export interface RawRequest {
  readonly method: string
  /** Each character is sent as the byte of its code. */
  readonly path: string
  readonly headers: OutgoingHttpHeaders
  readonly body?: Buffer | undefined
  /** The address that it comes from. */
  readonly from?: string | undefined
}

export interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  /** Empty when it has no end: a stream of events. */
  readonly text: string
}

/** Bodies of more bytes have a connection of their own: they may be refused before they have been sent. */
const maxKeptBody = 64 * 1024

export type Send = (request: RawRequest) => Effect.Effect<RawAnswer>

/** Sends to the server of the test, until the scope closes. */
export const make: Effect.Effect<Send, never, HttpServer.HttpServer | Scope.Scope> = Effect.gen(function*() {
  const { address } = yield* HttpServer.HttpServer
  const url = HttpServer.formatAddress(address)
  const agent = yield* Effect.acquireRelease(
    Effect.sync(() => new Agent({ keepAlive: true, maxSockets: 64 })),
    (agent) => Effect.sync(() => agent.destroy())
  )
  return ({ body, from, headers, method, path }) =>
    Effect.callback<RawAnswer>((resume) => {
      let answered = false
      const answer = (raw: RawAnswer) => {
        answered = true
        resume(Effect.succeed(raw))
      }
      const sendOver = (connections: Agent | false) => {
        const request = httpRequest(url, {
          method,
          path,
          agent: connections,
          ...from === undefined ? {} : { localAddress: from },
          headers: body === undefined || "transfer-encoding" in headers
            ? headers
            : { ...headers, "content-length": body.length }
        }, (response) => {
          const { headers, statusCode: status = 0 } = response
          if (headers["content-type"]?.startsWith("text/event-stream") === true && method !== "HEAD") {
            answer({ status, headers, text: "" })
            response.destroy()
            return
          }
          const chunks: Array<Buffer> = []
          response.on("data", (chunk) => chunks.push(chunk))
          response.on("error", (error) => resume(Effect.die(error)))
          response.on("end", () => answer({ status, headers, text: Buffer.concat(chunks).toString() }))
        })
        request.on("error", (error: NodeJS.ErrnoException) => {
          if (answered) return
          // The server may end a connection that was idle while a request is on its way.
          if (request.reusedSocket && error.code === "ECONNRESET") running = sendOver(false)
          else resume(Effect.succeed({ status: 0, headers: {}, text: String(error) }))
        })
        request.end(body)
        return request
      }
      let running = sendOver(from === undefined && (body?.length ?? 0) <= maxKeptBody ? agent : false)
      return Effect.sync(() => running.destroy())
    })
})
