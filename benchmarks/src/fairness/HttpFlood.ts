/**
 * Many HTTP requests of an attacker at a time, each as soon as one has ended.
 */
import { Agent, request } from "node:http"
import type { Attacker } from "./Attack.ts"

export interface FloodRequest {
  readonly method: "GET" | "POST"
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

/** A refused request waits so long before the next one takes its place, milliseconds. */
const pause = 20

/** Keeps `concurrency` requests under way, and counts their statuses. */
export const floodHttp = (
  { address, cloud, count }: Attacker,
  concurrency: number,
  next: () => FloodRequest
): void => {
  const localAddress = address()
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency })
  const send = (): void => {
    const { body, headers, method, path } = next()
    const sent = request(`${cloud.http}${path}`, {
      method,
      agent,
      ...localAddress === undefined ? {} : { localAddress },
      headers: {
        authorization: `Bearer ${cloud.key}`,
        ...body === undefined
          ? {}
          : { "content-type": "application/json", "content-length": Buffer.byteLength(body) },
        ...headers
      }
    }, (response) => {
      count(`HTTP ${response.statusCode}`)
      response.resume()
      response.once("close", () => response.statusCode === 200 ? send() : setTimeout(send, pause))
    })
    sent.once("error", () => {
      count("broken off")
      setTimeout(send, pause)
    })
    sent.end(body)
  }
  for (let i = 0; i < concurrency; i++) send()
}
