/**
 * Serves firmware over HTTP to a real device, whole or in ranges, and sees how much
 * of it the device gets.
 */
import { Effect, type Scope } from "effect"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { Unexpected } from "./Check.ts"

export interface FirmwareServer {
  /** Where the device finds the file. */
  readonly url: string
  /** How often the device has asked for the file or a part of it. */
  readonly requests: () => number
  /** Bytes of the file that were sent, those sent twice counted twice. */
  readonly bytes: () => number
}

/** The first and the last byte of a range; undefined: the whole file is asked for; "none": there are no such bytes. */
const rangeOf = (header: string | undefined, length: number): readonly [number, number] | "none" | undefined => {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(header ?? "") ?? []
  if (first === "" && last === "") return undefined
  const from = first === "" ? Math.max(length - Number(last), 0) : Number(first)
  const to = first === "" || last === "" ? length - 1 : Math.min(Number(last), length - 1)
  return from > to ? "none" : [from, to]
}

/**
 * Serves the file until the scope closes. Fails if it cannot listen there.
 *
 * @param listen for example `http://192.0.2.7:8000`; port 0: any that is free
 */
export const open = Effect.fnUntraced(function*(
  listen: string,
  file: Uint8Array
): Effect.fn.Return<FirmwareServer, Unexpected, Scope.Scope> {
  const { hostname, port, protocol } = URL.canParse(listen) ? new URL(listen) : { hostname: "", port: "", protocol: "" }
  if (protocol !== "http:") {
    return yield* Effect.fail(new Unexpected({ message: `--firmware-url: expected http://HOST:PORT, not ${listen}` }))
  }
  let [requests, bytes] = [0, 0]
  const path = "/firmware.bin"
  const server = createServer((request, response) => {
    if (request.url !== path || (request.method !== "GET" && request.method !== "HEAD")) {
      return void response.writeHead(404).end()
    }
    requests++
    const range = rangeOf(request.headers.range, file.length)
    if (range === "none") return void response.writeHead(416, { "content-range": `bytes */${file.length}` }).end()
    const part = range === undefined ? file : file.subarray(range[0], range[1] + 1)
    if (request.method === "GET") bytes += part.length
    response.writeHead(range === undefined ? 200 : 206, {
      "content-type": "application/octet-stream",
      "content-length": part.length,
      "accept-ranges": "bytes",
      ...range === undefined ? {} : { "content-range": `bytes ${range[0]}-${range[1]}/${file.length}` }
    })
    response.end(request.method === "GET" ? part : undefined)
  })
  yield* Effect.acquireRelease(
    Effect.callback<Server, Unexpected>((resume) => {
      server.once("error", ({ message }) => resume(Effect.fail(new Unexpected({ message: `${listen}: ${message}` }))))
      server.listen(Number(port || 80), hostname.replace(/^\[|\]$/g, ""), () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )
  return {
    url: `http://${hostname}:${(server.address() as AddressInfo).port}${path}`,
    requests: () => requests,
    bytes: () => bytes
  }
})
