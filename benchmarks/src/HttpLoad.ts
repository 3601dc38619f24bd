/**
 * The load over HTTP: lasting connections with one request at a time on each. It
 * speaks just enough HTTP to be much cheaper than the measured server.
 */
import { connect } from "node:net"
import { fail, Latencies, type LoadResult, measured, type Times } from "./Measurement.ts"

export interface HttpRequest {
  readonly method: "GET" | "POST"
  /** The path with the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** Each connection sends its share of the requests, again and again. */
export interface HttpJob extends Times {
  readonly kind: "http"
  /** How many connections; at most as many as requests. */
  readonly connections: number
  readonly requests: ReadonlyArray<HttpRequest>
}

const requestBytes = ({ body = "", headers, method, path }: HttpRequest): Buffer => {
  const fields = { host: "127.0.0.1", ...headers, ...body === "" ? {} : { "content-length": Buffer.byteLength(body) } }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body}`)
}

const endOfHead = Buffer.from("\r\n\r\n")

/** Calls `onAnswer` after each whole answer in a stream of chunks. Only one answer is under way at a time. */
const answers = (onAnswer: () => void) => {
  let head: Buffer | undefined
  let left = 0
  return (chunk: Buffer) => {
    if (left > 0) left -= chunk.length
    else {
      const bytes: Buffer = head === undefined ? chunk : Buffer.concat([head, chunk])
      const end = bytes.indexOf(endOfHead)
      head = end === -1 ? bytes : undefined
      if (end === -1) return
      const text = bytes.toString("latin1", 0, end)
      if (!text.startsWith("HTTP/1.1 200 ")) fail(bytes.toString())
      const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1]
      if (length === undefined) fail(`an answer without a length: ${text}`)
      left = end + endOfHead.length + Number(length) - bytes.length
    }
    if (left === 0) onAnswer()
    else if (left < 0) fail("an answer is longer than it says")
  }
}

export const sendRequests = async (port: number, job: HttpJob): Promise<LoadResult> => {
  const latencies = new Latencies()
  const starts = await Promise.all(
    Array.from({ length: job.connections }, (_, connection) =>
      new Promise<() => void>((resolve) => {
        const requests = job.requests.filter((_, i) => i % job.connections === connection).map(requestBytes)
        let next = 0
        let at = 0
        const send = () => {
          at = performance.now()
          socket.write(requests[next]!)
          next = (next + 1) % requests.length
        }
        const socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => resolve(send))
        socket.on(
          "data",
          answers(() => {
            latencies.record(performance.now() - at)
            send()
          })
        )
        socket.on("error", (error) => fail(String(error)))
        socket.on("close", () => fail("the server closed a connection"))
      }))
  )
  for (const start of starts) start()
  return measured(job, latencies)
}
