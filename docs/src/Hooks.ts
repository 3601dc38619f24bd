/** A server on this machine that stands for `https://example.com`: it keeps what webhooks send to it. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"

export interface Hooks {
  /** With a slash at its end. */
  readonly url: string
  /** Bodies that have come and that nobody has taken. */
  readonly bodies: Array<string>
  readonly close: () => void
}

/** Starts the server on a free port. */
export const start = async (): Promise<Hooks> => {
  const bodies: Array<string> = []
  const server = createServer(async (request, response) => {
    bodies.push(await text(request))
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/`, bodies, close: () => server.close() }
}
