/**
 * Health, metrics and documentation of a server with several workers, on the port
 * of its supervisor. Each worker serves its own on a port of this machine.
 */
import { securityHeaders } from "@device-cloud/http"
import { Effect, type Scope } from "effect"
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { pipeline } from "node:stream"
import { mergeMetrics } from "./MergedMetrics.ts"
import { InvalidConfig } from "./ServerConfig.ts"

/** The operations of one worker. */
export interface WorkerOperations {
  /** Counts from 1. */
  readonly number: number
  /** For example `http://127.0.0.1:34567`. */
  readonly url: string
}

/** Headers of the connection and of the body, neither of which a worker gets. */
const notPassedOn: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "keep-alive",
  "transfer-encoding",
  "upgrade"
])

/** How long a worker may take to respond, milliseconds. */
const workerMillis = 3000

/** Listens until the scope closes. Returns the URL. */
export const listen = (
  host: string,
  port: number,
  workers: () => ReadonlyArray<WorkerOperations>
): Effect.Effect<string, InvalidConfig, Scope.Scope> => {
  const server = createServer((incoming, response) => {
    serve(workers(), incoming, response).catch(() => {
      if (!response.headersSent) unavailable(response)
      else response.destroy()
    })
  })
  const failed = (cause: unknown) =>
    new InvalidConfig({ message: `HTTP_HOST, METRICS_PORT: cannot listen on ${host}, port ${port} (${String(cause)})` })
  return Effect.acquireRelease(
    Effect.callback<string, InvalidConfig>((resume) => {
      server.once("error", (cause) => resume(Effect.fail(failed(cause))))
      server.listen({ host, port }, () => {
        const name = host.includes(":") ? `[${host}]` : host
        resume(Effect.succeed(`http://${name}:${(server.address() as AddressInfo).port}`))
      })
    }),
    () =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )
}

/** Metrics are those of all workers; anything else is what one of them responds, one that is ready if there is any. */
const serve = async (workers: ReadonlyArray<WorkerOperations>, incoming: IncomingMessage, response: ServerResponse) => {
  const { method = "GET", url = "/" } = incoming
  const headers = Object.fromEntries(Object.entries(incoming.headers).filter(([name]) => !notPassedOn.has(name)))
  incoming.resume()
  if (url.split("?", 1)[0] === "/metrics") {
    const texts = await Promise.all(workers.map(async ({ number, url: base }) => {
      const fetched = await fetch(`${base}/metrics`, { signal: AbortSignal.timeout(workerMillis) }).catch(() =>
        undefined
      )
      return fetched?.ok === true ? [{ worker: number, text: await fetched.text() }] : []
    }))
    response.writeHead(200, { ...securityHeaders, "Content-Type": "text/plain; version=0.0.4; charset=utf-8" })
    response.end(mergeMetrics(texts.flat()))
    return
  }
  let last: IncomingMessage | undefined
  for (const { url: base } of workers) {
    const worker = await ask(base + url, method, headers).catch(() => undefined)
    if (worker === undefined) continue
    last?.resume()
    last = worker
    if (worker.statusCode !== 503) break
  }
  if (last === undefined) return unavailable(response)
  response.writeHead(last.statusCode ?? 502, last.headers)
  // A response that a worker does not complete is cut, so that its reader does not wait for the rest.
  pipeline(last, response, () => {})
}

const ask = (url: string, method: string, headers: IncomingMessage["headers"]): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const asked = request(url, { method, headers, timeout: workerMillis }, resolve)
    asked.once("error", reject)
    asked.once("timeout", () => asked.destroy(new Error("The worker does not respond")))
    asked.end()
  })

const unavailable = (response: ServerResponse) =>
  response.writeHead(503, { ...securityHeaders, "Content-Type": "application/json", "Retry-After": "1" })
    .end(JSON.stringify({ code: 50300, message: "No worker is ready" }))
