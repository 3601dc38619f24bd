/**
 * Ports for servers that are told where to listen.
 */
import { Effect } from "effect"
import { createServer } from "node:net"

/**
 * Below those that systems hand out by themselves: such a port may belong to somebody else by the time the server
 * listens.
 */
const [first, count] = [20_000, 12_000]

/** Processes that run beside each other begin far apart. */
let next = process.pid * 40

const isFree = (port: number) =>
  new Promise<boolean>((resolve) => {
    const server = createServer().listen(port, "127.0.0.1", () => server.close(() => resolve(true)))
    server.once("error", () => resolve(false))
  })

/** A port of loopback where nobody listens, another one each time. */
export const freePort: Effect.Effect<number> = Effect.promise(async () => {
  while (true) {
    const port = first + next++ % count
    if (await isFree(port)) return port
  }
})
